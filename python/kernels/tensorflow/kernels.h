// What the operations do: named tensors of libddl, on host memory. No thread of TensorFlow waits for them.
#pragma once

#include "python/kernels/tensorflow/tf_abi.h"

namespace ddl::tensorflow {

using ComputeFunction = void (*)(void* kernel, KernelContext* context, DoneCallback* done);

inline constexpr const char* kCpu = "CPU";
/// TensorFlow copies tensors of a GPU to the host before such a kernel, and back after it.
inline constexpr const char* kGpu = "GPU";

void* create_kernel(Construction* construction);
void delete_kernel(void* kernel);

void compute_allreduce(void* kernel, KernelContext* context, DoneCallback* done);
void compute_reducescatter(void* kernel, KernelContext* context, DoneCallback* done);
void compute_allgather(void* kernel, KernelContext* context, DoneCallback* done);
void compute_broadcast(void* kernel, KernelContext* context, DoneCallback* done);
void compute_alltoall(void* kernel, KernelContext* context, DoneCallback* done);
/// A number of this process, such as its rank.
void compute_number(void* kernel, KernelContext* context, DoneCallback* done);
/// Answers with its input from another thread, after it has returned: shows whether this version of TensorFlow's
/// library works as the module expects.
void compute_check(void* kernel, KernelContext* context, DoneCallback* done);

}  // namespace ddl::tensorflow
