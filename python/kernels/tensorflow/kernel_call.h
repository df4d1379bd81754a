// One run of a kernel: what TensorFlow hands to it, and what it answers, possibly later and on another thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ddl/ddl.h>

#include "python/kernels/tensorflow/tf_abi.h"

namespace ddl::tensorflow {

/// A tensor of the run. TensorFlow keeps its memory until the run has ended.
struct View {
  void* data = nullptr;
  DataType type = kFloat;
  std::vector<std::int64_t> dims;

  std::uint64_t count() const;
  /// Elements of one index of the first dimension; of a scalar, which counts as one row, 1.
  std::uint64_t row() const;
  std::uint64_t rows() const { return dims.empty() ? 1 : static_cast<std::uint64_t>(dims.front()); }
  std::vector<std::uint64_t> shape() const { return {dims.begin(), dims.end()}; }
};

/// -1: libddl has no such type.
ddl_dtype dtype_of(DataType type);
std::size_t element_size(DataType type);

/// Copyable, so that the completion of libddl can hold it. It is ended by succeed() or fail(), once.
class KernelCall {
 public:
  /// done must be called with what it points to only while the kernel has not returned, so its std::function, which it
  /// is in all versions (KernelCall relies on the layout of libstdc++), is copied here.
  KernelCall(const Api& api, KernelContext* context, const DoneCallback* done);

  int inputs() const { return api_->num_inputs(context_); }
  /// Throws Failure, as output() and forwarded_output() do.
  View input(int index) const;
  View output(int index, DataType type, const std::vector<std::int64_t>& dims) const;
  /// With the type and dimensions of an input, whose memory it may take.
  View forwarded_output(int index, int input, const View& like) const;

  void succeed() const { done_(); }
  void fail(Code code, const std::string& sentence) const;
  void fail(ddl_status status, const std::string& sentence) const;

  struct Failure {
    Code code;
    std::string sentence;
  };

 private:
  const Api* api_;
  KernelContext* context_;
  std::function<void()> done_;
};

}  // namespace ddl::tensorflow
