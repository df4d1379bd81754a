// The part of TensorFlow's C interface (tensorflow/c/kernels.h, ops.h, tf_status.h, tf_tensor.h) that the module uses,
// declared here so that nothing of TensorFlow's is needed to build it. The functions are those of the
// libtensorflow_framework that the program has loaded. tests/frameworks/tensorflow_abi_test.cpp compares these
// declarations with the headers of installed versions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace ddl::tensorflow {

// TF_Status, TF_Tensor, ...: opaque.
struct Status;
struct Tensor;
struct KernelBuilder;
struct Construction;   ///< TF_OpKernelConstruction
struct KernelContext;  ///< TF_OpKernelContext
struct DoneCallback;   ///< TF_AsyncOpKernelDoneCallback
struct OpBuilder;      ///< TF_OpDefinitionBuilder
struct ShapeContext;   ///< TF_ShapeInferenceContext
struct ShapeHandle;

struct StringView {
  const char* data;
  std::size_t size;
};

// TF_DataType
enum DataType : int {
  kFloat = 1,
  kDouble = 2,
  kInt32 = 3,
  kUint8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kInt64 = 9,
  kBool = 10,
  kBfloat16 = 14,
  kUint16 = 17,
  kHalf = 19,
  kUint32 = 22,
  kUint64 = 23,
};

// TF_Code
enum Code : int {
  kOk = 0,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kFailedPrecondition = 9,
  kAborted = 10,
  kUnimplemented = 12,
  kInternal = 13,
};

/// Entry points, named as TF_... with these words.
struct Api {
  Status* (*new_status)();
  void (*delete_status)(Status*);
  void (*set_status)(Status*, Code, const char* message);
  Code (*get_code)(const Status*);
  const char* (*message)(const Status*);

  void (*delete_tensor)(Tensor*);
  DataType (*tensor_type)(const Tensor*);
  int (*num_dims)(const Tensor*);
  std::int64_t (*dim)(const Tensor*, int);
  void* (*tensor_data)(const Tensor*);

  OpBuilder* (*new_op)(const char* name);
  void (*add_attr)(OpBuilder*, const char*);
  void (*add_input)(OpBuilder*, const char*);
  void (*add_output)(OpBuilder*, const char*);
  void (*set_stateful)(OpBuilder*, bool);
  void (*set_shape_function)(OpBuilder*, void (*)(ShapeContext*, Status*));
  void (*register_op)(OpBuilder*, Status*);
  ShapeHandle* (*new_shape)();
  void (*delete_shape)(ShapeHandle*);
  std::int64_t (*shape_inputs)(ShapeContext*);
  void (*shape_get_input)(ShapeContext*, int, ShapeHandle*, Status*);
  void (*shape_set_output)(ShapeContext*, int, ShapeHandle*, Status*);
  void (*shape_set_unknown)(ShapeContext*, Status*);

  KernelBuilder* (*new_async_kernel)(const char* op, const char* device, void* (*create)(Construction*),
                                     void (*compute)(void*, KernelContext*, DoneCallback*),
                                     void (*destroy)(void*));
  void (*host_memory)(KernelBuilder*, const char* argument);
  void (*register_kernel)(const char* name, KernelBuilder*, Status*);

  StringView (*construction_name)(Construction*);
  void (*attr_size)(Construction*, const char* name, std::int32_t* list, std::int32_t* total, Status*);
  void (*attr_string)(Construction*, const char* name, char* value, std::size_t size, Status*);
  void (*attr_int)(Construction*, const char* name, std::int64_t* value, Status*);
  void (*construction_failure)(Construction*, Status*);

  int (*num_inputs)(KernelContext*);
  void (*get_input)(KernelContext*, int, Tensor**, Status*);
  Tensor* (*allocate_output)(KernelContext*, int, DataType, const std::int64_t* dims, int num_dims,
                             std::size_t bytes, Status*);
  Tensor* (*forward_or_allocate_output)(KernelContext*, const int* candidates, int num_candidates, int output,
                                        const std::int64_t* dims, int num_dims, int* forwarded, Status*);
  void (*context_failure)(KernelContext*, Status*);
};

/// The functions of the loaded TensorFlow; null: it is not loaded, or lacks one, which missing_function() says.
const Api* api();
const std::string& missing_function();

}  // namespace ddl::tensorflow
