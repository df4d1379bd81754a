// libddl's calls as operations of TensorFlow, which the module declares when TensorFlow opens it.
#include <string>
#include <vector>

#include <ddl/ddl.h>

#include "python/kernels/tensorflow/kernels.h"

namespace ddl::tensorflow {
namespace {

/// An operation as TensorFlow's registry knows it, in the syntax of its OpDef.
struct Operation {
  const char* name;
  std::vector<const char*> attributes;
  std::vector<const char*> inputs;
  std::vector<const char*> outputs;
  bool keeps_shapes;  ///< of each input, for the output of the same number; otherwise they are not known
  ComputeFunction compute;
};

constexpr const char* kTypes =
    "T: {float16, bfloat16, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64, "
    "bool}";
// The name of the node is the tensor's, if it has no other.
constexpr const char* kName = "tensor_name: string = ''";
// A name that an eager call gives, as bytes: TensorFlow keeps a kernel for each value of an attribute, for ever.
constexpr const char* kNames = "M: int >= 0";
constexpr const char* kGivenName = "given_name: M * uint8";
constexpr const char* kSet = "process_set: int = 0";
constexpr const char* kFails = "fails_if_joined: int = 0";
constexpr const char* kSeveral = "N: int >= 1";
constexpr const char* kOp = "reduce_op: int";
// Floats of attributes have 32 bits; these are the 64 bits of a double.
constexpr const char* kPrescale = "prescale_bits: int";
constexpr const char* kPostscale = "postscale_bits: int";

const std::vector<Operation>& operations() {
  static const std::vector<Operation> kOperations = {
      {"DdlAllreduce",
       {kTypes, kSeveral, kName, kNames, kSet, kOp, kPrescale, kPostscale},
       {"tensors: N * T", kGivenName},
       {"reduced: N * T"},
       true,
       compute_allreduce},
      {"DdlReducescatter",
       {kTypes, kSeveral, kName, kNames, kSet, kFails, kOp, kPrescale, kPostscale},
       {"tensors: N * T", kGivenName},
       {"scattered: N * T"},
       false,
       compute_reducescatter},
      {"DdlAllgather",
       {kTypes, kSeveral, kName, kNames, kSet, kFails},
       {"tensors: N * T", kGivenName},
       {"gathered: N * T", "rows: N * int64"},
       false,
       compute_allgather},
      {"DdlBroadcast",
       {kTypes, kName, kNames, kSet, kFails, "root: int"},
       {"tensor: T", kGivenName},
       {"received: T"},
       true,
       compute_broadcast},
      {"DdlAlltoall",
       {kTypes, kName, kNames, kSet, kFails},
       {"tensor: T", "splits: int32", kGivenName},
       {"received: T", "received_splits: int32"},
       false,
       compute_alltoall},
      {"DdlNumber", {"number: string"}, {}, {"value: int32"}, false, compute_number},
      {"DdlCheck", {}, {"value: int32"}, {"same: int32"}, true, compute_check},
  };
  return kOperations;
}

// Of graphs, in which there is no given name.
void infer_same_shapes(ShapeContext* context, Status* status) {
  const Api& tf = *api();
  ShapeHandle* const shape = tf.new_shape();
  const auto inputs = static_cast<int>(tf.shape_inputs(context));
  for (int i = 0; i < inputs && tf.get_code(status) == kOk; ++i) {
    tf.shape_get_input(context, i, shape, status);
    if (tf.get_code(status) == kOk) tf.shape_set_output(context, i, shape, status);
  }
  tf.delete_shape(shape);
}

void infer_nothing(ShapeContext* context, Status* status) { api()->shape_set_unknown(context, status); }

std::string argument_name(const char* declared) {
  const std::string text = declared;
  return text.substr(0, text.find(':'));
}

void declare(const Api& tf, const Operation& operation, Status* status) {
  OpBuilder* const builder = tf.new_op(operation.name);
  for (const char* attribute : operation.attributes) tf.add_attr(builder, attribute);
  for (const char* input : operation.inputs) tf.add_input(builder, input);
  for (const char* output : operation.outputs) tf.add_output(builder, output);
  tf.set_stateful(builder, true);
  tf.set_shape_function(builder, operation.keeps_shapes ? infer_same_shapes : infer_nothing);
  tf.register_op(builder, status);  // takes the builder
}

void add_kernel(const Api& tf, const Operation& operation, const char* device, Status* status) {
  KernelBuilder* const builder =
      tf.new_async_kernel(operation.name, device, create_kernel, operation.compute, delete_kernel);
  if (device != kCpu)
    for (const auto* const arguments : {&operation.inputs, &operation.outputs})
      for (const char* argument : *arguments) tf.host_memory(builder, argument_name(argument).c_str());
  tf.register_kernel(operation.name, builder, status);  // takes the builder
}

/// "": TensorFlow has taken all.
std::string register_operations(const Api& tf) {
  Status* const status = tf.new_status();
  std::string problem;
  for (const Operation& operation : operations()) {
    declare(tf, operation, status);
    for (const char* device : {kCpu, kGpu})
      if (tf.get_code(status) == kOk) add_kernel(tf, operation, device, status);
    if (tf.get_code(status) == kOk) continue;
    problem = std::string("TensorFlow refuses ") + operation.name + ": " + tf.message(status);
    break;
  }
  tf.delete_status(status);
  return problem;
}

std::string& problem() {
  static std::string& kProblem = *new std::string("TensorFlow has not opened the module");
  return kProblem;
}

__attribute__((constructor)) void opened() {
  problem() = api() == nullptr ? missing_function() : register_operations(*api());
}

}  // namespace
}  // namespace ddl::tensorflow

/// Why there are no operations; "": there are.
extern "C" DDL_API const char* ddl_tensorflow_problem() { return ddl::tensorflow::problem().c_str(); }
