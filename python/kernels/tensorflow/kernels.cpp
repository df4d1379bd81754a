#include "python/kernels/tensorflow/kernels.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "python/kernels/named_calls.h"
#include "python/kernels/tensorflow/kernel_call.h"

namespace ddl::tensorflow {
namespace {

using kernels::Gathered;
using kernels::Joined;
using kernels::joined;
using kernels::Kind;
using kernels::Outcome;
using kernels::Request;

/// What the attributes of a node say.
struct Kernel {
  std::string name;
  std::int64_t given_names = 0;  ///< 1: the last input is the name
  std::string number;            ///< of DdlNumber
  std::int64_t op = DDL_SUM;
  std::int64_t root = 0;
  std::int64_t process_set = 0;
  std::int64_t fails_if_joined = 0;
  double prescale = 1.0;
  double postscale = 1.0;
};

/// Attributes that a node does not have keep their values.
class Attributes {
 public:
  explicit Attributes(Construction* construction) : construction_(construction), status_(tf_.new_status()) {}
  ~Attributes() { tf_.delete_status(status_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;

  std::string text(const char* name) {
    std::int32_t list = 0;
    std::int32_t size = 0;
    tf_.attr_size(construction_, name, &list, &size, status_);
    if (!is_there() || size <= 0) return "";
    std::string value(static_cast<std::size_t>(size), '\0');
    tf_.attr_string(construction_, name, value.data(), value.size(), status_);
    return is_there() ? value : "";
  }
  void number(const char* name, std::int64_t& value) {
    std::int64_t found = 0;
    tf_.attr_int(construction_, name, &found, status_);
    if (is_there()) value = found;
  }
  void real(const char* name, double& value) {
    auto bits = std::bit_cast<std::int64_t>(value);
    number(name, bits);
    value = std::bit_cast<double>(bits);
  }

 private:
  bool is_there() {
    const bool yes = tf_.get_code(status_) == kOk;
    tf_.set_status(status_, kOk, "");
    return yes;
  }

  const Api& tf_ = *api();
  Construction* construction_;
  Status* status_;
};

template <class Body>
void run(KernelContext* context, DoneCallback* done, const Body& body) {
  const KernelCall call(*api(), context, done);
  try {
    body(call);
  } catch (const KernelCall::Failure& failure) {
    call.fail(failure.code, failure.sentence);
  } catch (const std::exception& error) {
    call.fail(kInternal, error.what());
  }
}

int tensors_of(const KernelCall& call, const Kernel& kernel) {
  return call.inputs() - static_cast<int>(kernel.given_names);
}

Request request_of(const KernelCall& call, const Kernel& kernel, Kind kind) {
  Request request;
  request.kind = kind;
  request.name = kernel.name;
  if (kernel.given_names > 0) {
    const View name = call.input(call.inputs() - 1);
    request.name.assign(static_cast<const char*>(name.data), name.count());
  }
  request.op = static_cast<ddl_op>(kernel.op);
  request.root = static_cast<std::int32_t>(kernel.root);
  request.process_set = static_cast<std::uint64_t>(kernel.process_set);
  request.prescale = kernel.prescale;
  request.postscale = kernel.postscale;
  request.fails_if_joined = kernel.fails_if_joined != 0;
  return request;
}

/// Submits a request. results: makes the outputs of what libddl has allocated.
template <class Results>
void start(const KernelCall& call, Request&& request, Results results) {
  kernels::start(std::move(request), [call, results = std::move(results)](Outcome& outcome) {
    const auto fail = [&](auto status, const std::string& sentence) {
      outcome.free_gathered();
      call.fail(status, sentence);
    };
    try {
      if (outcome.status != DDL_OK) return fail(outcome.status, outcome.sentence);
      results(outcome.gathered);
    } catch (const KernelCall::Failure& failure) {
      return fail(failure.code, failure.sentence);
    } catch (const std::exception& error) {
      return fail(kInternal, error.what());
    }
    outcome.free_gathered();
    call.succeed();
  });
}

void start(const KernelCall& call, Request&& request) {
  start(call, std::move(request), [](const std::vector<Gathered>&) {});
}

struct Members {
  std::size_t size;
  std::size_t rank;
};
Members members_of(const Request& request) {
  const Joined here = joined();
  if (here.context == nullptr) throw KernelCall::Failure{kFailedPrecondition, kernels::kNotJoined};
  const std::uint64_t set = request.process_set;
  const std::int32_t rank = ddl_process_set_rank(here.context, set);
  if (rank < 0)
    throw KernelCall::Failure{kInvalidArgument,
                              "this rank is not in the process set of the tensor \"" + request.name + "\""};
  return {static_cast<std::size_t>(ddl_process_set_size(here.context, set)), static_cast<std::size_t>(rank)};
}

std::vector<std::int64_t> with_rows(const View& like, std::uint64_t rows) {
  std::vector<std::int64_t> dims = like.dims.empty() ? std::vector<std::int64_t>{1} : like.dims;
  dims.front() = static_cast<std::int64_t>(rows);
  return dims;
}

/// How many rows came from each rank. Of rows without elements nothing comes, so none are counted.
std::vector<std::uint64_t> rows_of(const Gathered& gathered, const View& like) {
  std::vector<std::uint64_t> rows;
  for (const std::uint64_t count : gathered.counts) rows.push_back(like.row() == 0 ? 0 : count / like.row());
  return rows;
}

/// The output of these rows.
void take(const KernelCall& call, int index, const Gathered& gathered, const View& like, std::uint64_t rows) {
  const View output = call.output(index, like.type, with_rows(like, rows));
  const std::size_t bytes = output.count() * element_size(like.type);
  if (bytes > 0) std::memcpy(output.data, gathered.memory, bytes);
}

template <class Number>
void write(const View& output, const std::vector<std::uint64_t>& values) {
  auto* const place = static_cast<Number*>(output.data);
  for (std::size_t i = 0; i < values.size(); ++i) place[i] = static_cast<Number>(values[i]);
}

std::uint64_t sum(const std::vector<std::uint64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::uint64_t{0});
}

std::vector<std::uint64_t> times(std::vector<std::uint64_t> rows, std::uint64_t row) {
  for (std::uint64_t& one : rows) one *= row;
  return rows;
}

/// The name of a node without what TensorFlow has counted. It makes "cond/then/_3/x" of a node in a branch, and "_3" may
/// be another number on a rank whose program has one branch more.
std::string without_counts(std::string name) {
  for (std::size_t begin = name.find("/_"); begin != std::string::npos; begin = name.find("/_", begin)) {
    const std::size_t end = name.find_first_not_of("0123456789", begin + 2);
    if (end != std::string::npos && end > begin + 2 && name[end] == '/')
      name.erase(begin, end - begin);
    else
      begin += 2;
  }
  return name;
}

std::int32_t number_of(ddl_context* context, const std::string& what) {
  if (what == "rank") return ddl_rank(context);
  if (what == "local_rank") return ddl_local_rank(context);
  return what == "local_size" ? ddl_local_size(context) : ddl_size(context);
}

}  // namespace

void* create_kernel(Construction* construction) {
  Attributes attributes(construction);
  auto kernel = std::make_unique<Kernel>();
  kernel->name = attributes.text("tensor_name");
  kernel->number = attributes.text("number");
  attributes.number("M", kernel->given_names);
  attributes.number("reduce_op", kernel->op);
  attributes.number("root", kernel->root);
  attributes.number("process_set", kernel->process_set);
  attributes.number("fails_if_joined", kernel->fails_if_joined);
  attributes.real("prescale_bits", kernel->prescale);
  attributes.real("postscale_bits", kernel->postscale);
  if (kernel->name.empty()) {
    const StringView node = api()->construction_name(construction);
    kernel->name = without_counts(std::string(node.data, node.size));
  }
  return kernel.release();
}

void delete_kernel(void* kernel) { delete static_cast<Kernel*>(kernel); }

void compute_allreduce(void* kernel, KernelContext* context, DoneCallback* done) {
  run(context, done, [kernel](const KernelCall& call) {
    const auto& attributes = *static_cast<Kernel*>(kernel);
    Request request = request_of(call, attributes, Kind::kAllreduce);
    for (int i = 0; i < tensors_of(call, attributes); ++i) {
      const View in = call.input(i);
      const View out = call.forwarded_output(i, i, in);
      request.parts.push_back({in.data, out.data, in.count(), dtype_of(in.type), in.shape(), {}});
    }
    start(call, std::move(request));
  });
}

void compute_reducescatter(void* kernel, KernelContext* context, DoneCallback* done) {
  run(context, done, [kernel](const KernelCall& call) {
    const auto& attributes = *static_cast<Kernel*>(kernel);
    Request request = request_of(call, attributes, Kind::kReduceScatter);
    const Members members = members_of(request);
    for (int i = 0; i < tensors_of(call, attributes); ++i) {
      const View in = call.input(i);
      const std::vector<std::uint64_t> rows = kernels::scattered_rows(in.rows(), members.size);
      const View out = call.output(i, in.type, with_rows(in, rows[members.rank]));
      request.parts.push_back(
          {in.data, out.data, in.count(), dtype_of(in.type), in.shape(), times(rows, in.row())});
    }
    start(call, std::move(request));
  });
}

void compute_allgather(void* kernel, KernelContext* context, DoneCallback* done) {
  run(context, done, [kernel](const KernelCall& call) {
    const auto& attributes = *static_cast<Kernel*>(kernel);
    Request request = request_of(call, attributes, Kind::kAllgather);
    std::vector<View> inputs;
    for (int i = 0; i < tensors_of(call, attributes); ++i) {
      const View in = call.input(i);
      request.parts.push_back({in.data, nullptr, in.count(), dtype_of(in.type), in.shape(), {}});
      inputs.push_back(in);
    }
    start(call, std::move(request), [call, inputs](const std::vector<Gathered>& gathered) {
      const auto size = static_cast<int>(inputs.size());
      for (int i = 0; i < size; ++i) {
        const View& in = inputs[static_cast<std::size_t>(i)];
        const Gathered& from_all = gathered[static_cast<std::size_t>(i)];
        const std::vector<std::uint64_t> rows = rows_of(from_all, in);
        take(call, i, from_all, in, sum(rows));
        write<std::int64_t>(call.output(size + i, kInt64, {static_cast<std::int64_t>(rows.size())}), rows);
      }
    });
  });
}

void compute_broadcast(void* kernel, KernelContext* context, DoneCallback* done) {
  run(context, done, [kernel](const KernelCall& call) {
    const View in = call.input(0);
    const View out = call.forwarded_output(0, 0, in);
    if (out.data != in.data && in.count() > 0)
      std::memcpy(out.data, in.data, in.count() * element_size(in.type));
    Request request = request_of(call, *static_cast<Kernel*>(kernel), Kind::kBroadcast);
    request.parts.push_back({nullptr, out.data, in.count(), dtype_of(in.type), in.shape(), {}});
    start(call, std::move(request));
  });
}

void compute_alltoall(void* kernel, KernelContext* context, DoneCallback* done) {
  run(context, done, [kernel](const KernelCall& call) {
    Request request = request_of(call, *static_cast<Kernel*>(kernel), Kind::kAlltoall);
    const Members members = members_of(request);
    const View in = call.input(0);
    const View given = call.input(1);
    const auto* const splits = static_cast<const std::int32_t*>(given.data);
    std::vector<std::uint64_t> rows(members.size, in.rows() / members.size);
    if (given.count() > 0) rows.assign(splits, splits + given.count());
    const bool has_negative = std::any_of(splits, splits + given.count(), [](int one) { return one < 0; });
    if (has_negative || rows.size() != members.size || sum(rows) != in.rows())
      throw KernelCall::Failure{
          kInvalidArgument,
          given.count() == 0 ? std::to_string(in.rows()) + " rows of \"" + request.name + "\" are no " +
                                   std::to_string(members.size) + " equal parts; give splits"
                             : "splits of \"" + request.name + "\" must be " + std::to_string(members.size) +
                                   " numbers whose sum is its " + std::to_string(in.rows()) + " rows"};
    request.parts.push_back(
        {in.data, nullptr, in.count(), dtype_of(in.type), in.shape(), times(rows, in.row())});
    start(call, std::move(request), [call, in](const std::vector<Gathered>& gathered) {
      const std::vector<std::uint64_t> received = rows_of(gathered.front(), in);
      take(call, 0, gathered.front(), in, sum(received));
      write<std::int32_t>(call.output(1, kInt32, {static_cast<std::int64_t>(received.size())}), received);
    });
  });
}

void compute_number(void* kernel, KernelContext* context, DoneCallback* done) {
  run(context, done, [kernel](const KernelCall& call) {
    std::int32_t number = 0;
    {
      const Joined here = joined();
      if (here.context == nullptr) throw KernelCall::Failure{kFailedPrecondition, kernels::kNotJoined};
      number = number_of(here.context, static_cast<Kernel*>(kernel)->number);
    }
    *static_cast<std::int32_t*>(call.output(0, kInt32, {}).data) = number;
    call.succeed();
  });
}

void compute_check(void*, KernelContext* context, DoneCallback* done) {
  run(context, done, [](const KernelCall& call) {
    std::thread([call] {
      const View in = call.input(0);
      const View out = call.output(0, in.type, in.dims);
      if (in.count() > 0) std::memcpy(out.data, in.data, in.count() * element_size(in.type));
      call.succeed();
    }).detach();
  });
}

}  // namespace ddl::tensorflow
