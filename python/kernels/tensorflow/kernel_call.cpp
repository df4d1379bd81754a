#include "python/kernels/tensorflow/kernel_call.h"

#include <memory>

namespace ddl::tensorflow {
namespace {

struct StatusDeleter {
  const Api* api;
  void operator()(Status* status) const { api->delete_status(status); }
};
using OwnedStatus = std::unique_ptr<Status, StatusDeleter>;
OwnedStatus new_status(const Api& api) { return {api.new_status(), {&api}}; }

struct TensorDeleter {
  const Api* api;
  void operator()(Tensor* tensor) const { api->delete_tensor(tensor); }
};

/// The view of a tensor that a function of TensorFlow has given; the handle is not needed any more then.
View view_of(const Api& api, Tensor* tensor, const Status* status) {
  const std::unique_ptr<Tensor, TensorDeleter> owner(tensor, {&api});
  if (api.get_code(status) != kOk) throw KernelCall::Failure{api.get_code(status), api.message(status)};
  View view = {api.tensor_data(tensor), api.tensor_type(tensor), {}};
  for (int i = 0; i < api.num_dims(tensor); ++i) view.dims.push_back(api.dim(tensor, i));
  return view;
}

Code code_of(ddl_status status) {
  switch (status) {
    case DDL_ERROR_INVALID_ARGUMENT: return kInvalidArgument;
    case DDL_ERROR_MISMATCH:
    case DDL_ERROR_BUSY: return kFailedPrecondition;
    case DDL_ERROR_TIMEOUT: return kDeadlineExceeded;
    // Not kUnavailable: TensorFlow keeps that for its own network, and reports it as a defect.
    case DDL_ERROR_PEER_LOST:
    case DDL_ERROR_BOOTSTRAP:
    case DDL_ERROR_ABORTED:
    case DDL_ERROR_INTERRUPTED: return kAborted;
    case DDL_ERROR_UNSUPPORTED: return kUnimplemented;
    default: return kInternal;
  }
}

}  // namespace

std::uint64_t View::count() const {
  std::uint64_t count = 1;
  for (const std::int64_t dim : dims) count *= static_cast<std::uint64_t>(dim);
  return count;
}

std::uint64_t View::row() const {
  std::uint64_t count = 1;
  for (std::size_t i = 1; i < dims.size(); ++i) count *= static_cast<std::uint64_t>(dims[i]);
  return count;
}

ddl_dtype dtype_of(DataType type) {
  switch (type) {
    case kFloat: return DDL_FLOAT32;
    case kDouble: return DDL_FLOAT64;
    case kInt32: return DDL_INT32;
    case kUint8: return DDL_UINT8;
    case kInt16: return DDL_INT16;
    case kInt8: return DDL_INT8;
    case kInt64: return DDL_INT64;
    case kBool: return DDL_BOOL;
    case kBfloat16: return DDL_BFLOAT16;
    case kUint16: return DDL_UINT16;
    case kHalf: return DDL_FLOAT16;
    case kUint32: return DDL_UINT32;
    case kUint64: return DDL_UINT64;
  }
  return -1;
}

std::size_t element_size(DataType type) { return ddl_dtype_size(dtype_of(type)); }

KernelCall::KernelCall(const Api& api, KernelContext* context, const DoneCallback* done)
    : api_(&api), context_(context), done_(*reinterpret_cast<const std::function<void()>*>(done)) {}

View KernelCall::input(int index) const {
  const OwnedStatus status = new_status(*api_);
  Tensor* tensor = nullptr;
  api_->get_input(context_, index, &tensor, status.get());
  return view_of(*api_, tensor, status.get());
}

View KernelCall::output(int index, DataType type, const std::vector<std::int64_t>& dims) const {
  std::size_t bytes = element_size(type);
  for (const std::int64_t dim : dims) bytes *= static_cast<std::size_t>(dim);
  const OwnedStatus status = new_status(*api_);
  Tensor* const tensor = api_->allocate_output(context_, index, type, dims.data(),
                                               static_cast<int>(dims.size()), bytes, status.get());
  return view_of(*api_, tensor, status.get());
}

View KernelCall::forwarded_output(int index, int input, const View& like) const {
  const OwnedStatus status = new_status(*api_);
  int forwarded = 0;
  Tensor* const tensor =
      api_->forward_or_allocate_output(context_, &input, 1, index, like.dims.data(),
                                       static_cast<int>(like.dims.size()), &forwarded, status.get());
  return view_of(*api_, tensor, status.get());
}

void KernelCall::fail(Code code, const std::string& sentence) const {
  const OwnedStatus status = new_status(*api_);
  api_->set_status(status.get(), code, sentence.c_str());
  api_->context_failure(context_, status.get());
  done_();
}

void KernelCall::fail(ddl_status status, const std::string& sentence) const {
  fail(code_of(status), sentence);
}

}  // namespace ddl::tensorflow
