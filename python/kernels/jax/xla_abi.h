// The part of XLA's foreign function interface that the module uses, declared here so that nothing of XLA's is needed
// to build it. It is the C interface (xla/ffi/api/c_api.h) of API 0.1 (jaxlib 0.5) to 0.3 (jaxlib 0.10).
// tests/frameworks/programs/xla_abi.cpp compares it with the header of the installed jaxlib.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ddl::jax::xla {

struct Error;             ///< XLA_FFI_Error; a null pointer is success
struct Future;            ///< XLA_FFI_Future
struct ExecutionContext;  ///< XLA_FFI_ExecutionContext

/// XLA_FFI_Extension_Base.
struct Extension {
  std::size_t struct_size;
  int type;
  Extension* next;
};
inline constexpr int kMetadata = 1;  ///< XLA_FFI_Extension_Metadata

struct Version {
  std::size_t struct_size;
  Extension* extension;
  int major;
  int minor;
};
inline constexpr int kMajor = 0;
inline constexpr int kNewestMinor = 3;
/// From here on a type has a TypeInfo, and metadata the type of the state.
inline constexpr int kTypeInfoMinor = 2;
/// From here on a state belongs to a stage.
inline constexpr int kStageMinor = 3;

struct ByteSpan {
  const char* data;
  std::size_t size;
};

// XLA_FFI_Error_Code
enum ErrorCode : int {
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kFailedPrecondition = 9,
  kAborted = 10,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
};

// XLA_FFI_DataType
enum DataType : int {
  kBool = 1,
  kInt8 = 2,
  kInt16 = 3,
  kInt32 = 4,
  kInt64 = 5,
  kUint8 = 6,
  kUint16 = 7,
  kUint32 = 8,
  kUint64 = 9,
  kFloat16 = 10,
  kFloat32 = 11,
  kFloat64 = 12,
  kBfloat16 = 16,
  kFloat8E5m2 = 19,
  kFloat8E4m3fn = 20,
  kFloat8E5m2fnuz = 24,
  kFloat8E4m3fnuz = 25,
};

/// XLA_FFI_Buffer, an array in dense row-major order.
struct Buffer {
  std::size_t struct_size;
  Extension* extension;
  DataType dtype;
  void* data;
  std::int64_t dimensions;
  std::int64_t* shape;
};

/// XLA_FFI_Args and XLA_FFI_Rets: all entries are buffers.
struct Buffers {
  std::size_t struct_size;
  Extension* extension;
  std::int64_t size;
  int* types;
  Buffer** buffers;
};

// XLA_FFI_AttrType
enum AttributeType : int { kScalar = 3, kString = 4 };

/// XLA_FFI_Scalar.
struct Scalar {
  DataType dtype;
  void* value;
};

struct Attributes {
  std::size_t struct_size;
  Extension* extension;
  std::int64_t size;
  AttributeType* types;
  ByteSpan** names;
  void** values;  ///< of a Scalar or ByteSpan
};

// XLA_FFI_ExecutionStage
enum Stage : int { kInstantiate = 0, kExecute = 3 };

struct Api;

struct CallFrame {
  std::size_t struct_size;
  Extension* extension;
  const Api* api;
  ExecutionContext* context;
  Stage stage;
  Buffers arguments;
  Buffers results;
  Attributes attributes;
  Future* future;
};

struct TypeId {
  std::int64_t number;
};

struct TypeInfo {
  std::size_t struct_size;
  Extension* extension;
  void (*deleter)(void* object);
};

struct Metadata {
  std::size_t struct_size;
  Version version;
  std::uint32_t traits;
  TypeId state_type;  ///< since kTypeInfoMinor
};

struct MetadataExtension {
  Extension base;
  Metadata* metadata;
};

// Arguments of the functions below.

struct ErrorCreateArguments {
  std::size_t struct_size;
  Extension* extension;
  const char* message;
  ErrorCode code;
};
struct ErrorDestroyArguments {
  std::size_t struct_size;
  Extension* extension;
  Error* error;
};
struct StreamGetArguments {
  std::size_t struct_size;
  Extension* extension;
  ExecutionContext* context;
  void* stream;
};
struct TypeRegisterArguments {
  std::size_t struct_size;
  Extension* extension;
  ByteSpan name;
  TypeId* type;
  const TypeInfo* info;  ///< since kTypeInfoMinor
};
/// Of a state, before kStageMinor.
struct OldStateArguments {
  std::size_t struct_size;
  Extension* extension;
  ExecutionContext* context;
  TypeId* type;
  void* state;
  void (*deleter)(void* state);  ///< of State_Set, before kTypeInfoMinor
};
struct StateArguments {
  std::size_t struct_size;
  Extension* extension;
  ExecutionContext* context;
  Stage stage;
  TypeId* type;
  void* state;
};
struct FutureCreateArguments {
  std::size_t struct_size;
  Extension* extension;
  Future* future;
};
struct FutureSetAvailableArguments {
  std::size_t struct_size;
  Extension* extension;
  Future* future;
};
struct FutureSetErrorArguments {
  std::size_t struct_size;
  Extension* extension;
  Future* future;
  Error* error;
};

/// XLA_FFI_Api, up to the last function that the module calls.
struct Api {
  std::size_t struct_size;
  Extension* extension;
  Version version;
  const void* internal;
  Error* (*error_create)(ErrorCreateArguments*);
  void* error_get_message;
  void (*error_destroy)(ErrorDestroyArguments*);
  void* handler_register;
  Error* (*stream_get)(StreamGetArguments*);
  Error* (*type_register)(TypeRegisterArguments*);
  void* execution_context_get;
  Error* (*state_set)(void*);
  Error* (*state_get)(void*);
  void* device_memory_allocate;
  void* device_memory_free;
  void* thread_pool_schedule;
  void* thread_pool_threads;
  Error* (*future_create)(FutureCreateArguments*);
  Error* (*future_set_available)(FutureSetAvailableArguments*);
  Error* (*future_set_error)(FutureSetErrorArguments*);
};

}  // namespace ddl::jax::xla
