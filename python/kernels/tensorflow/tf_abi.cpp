#include "python/kernels/tensorflow/tf_abi.h"

#include <dlfcn.h>

#include <optional>
#include <type_traits>

namespace ddl::tensorflow {
namespace {

struct Loaded {
  std::optional<Api> api;
  std::string problem;
};

/// The library's number has been 2 since TensorFlow 2.0.
constexpr const char* kLibrary = "libtensorflow_framework.so.2";

Loaded load() {
  void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return {std::nullopt, std::string(kLibrary) + " has not been loaded"};
  Api api{};
  std::string missing;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(library, name));
    if (function == nullptr && missing.empty()) missing = name;
  };
  find(api.new_status, "TF_NewStatus");
  find(api.delete_status, "TF_DeleteStatus");
  find(api.set_status, "TF_SetStatus");
  find(api.get_code, "TF_GetCode");
  find(api.message, "TF_Message");
  find(api.delete_tensor, "TF_DeleteTensor");
  find(api.tensor_type, "TF_TensorType");
  find(api.num_dims, "TF_NumDims");
  find(api.dim, "TF_Dim");
  find(api.tensor_data, "TF_TensorData");
  find(api.new_op, "TF_NewOpDefinitionBuilder");
  find(api.add_attr, "TF_OpDefinitionBuilderAddAttr");
  find(api.add_input, "TF_OpDefinitionBuilderAddInput");
  find(api.add_output, "TF_OpDefinitionBuilderAddOutput");
  find(api.set_stateful, "TF_OpDefinitionBuilderSetIsStateful");
  find(api.set_shape_function, "TF_OpDefinitionBuilderSetShapeInferenceFunction");
  find(api.register_op, "TF_RegisterOpDefinition");
  find(api.new_shape, "TF_NewShapeHandle");
  find(api.delete_shape, "TF_DeleteShapeHandle");
  find(api.shape_inputs, "TF_ShapeInferenceContextNumInputs");
  find(api.shape_get_input, "TF_ShapeInferenceContextGetInput");
  find(api.shape_set_output, "TF_ShapeInferenceContextSetOutput");
  find(api.shape_set_unknown, "TF_ShapeInferenceContextSetUnknownShape");
  find(api.new_async_kernel, "TF_NewAsyncKernelBuilder");
  find(api.host_memory, "TF_KernelBuilder_HostMemory");
  find(api.register_kernel, "TF_RegisterKernelBuilder");
  find(api.construction_name, "TF_OpKernelConstruction_GetName");
  find(api.attr_size, "TF_OpKernelConstruction_GetAttrSize");
  find(api.attr_string, "TF_OpKernelConstruction_GetAttrString");
  find(api.attr_int, "TF_OpKernelConstruction_GetAttrInt64");
  find(api.construction_failure, "TF_OpKernelConstruction_Failure");
  find(api.num_inputs, "TF_NumInputs");
  find(api.get_input, "TF_GetInput");
  find(api.allocate_output, "TF_AllocateOutput");
  find(api.forward_or_allocate_output, "TF_ForwardInputOrAllocateOutput");
  find(api.context_failure, "TF_OpKernelContext_Failure");
  if (!missing.empty()) return {std::nullopt, std::string(kLibrary) + " has no function " + missing};
  return {api, ""};
}

const Loaded& loaded() {
  static const Loaded kLoaded = load();
  return kLoaded;
}

}  // namespace

const Api* api() { return loaded().api ? &*loaded().api : nullptr; }
const std::string& missing_function() { return loaded().problem; }

}  // namespace ddl::tensorflow
