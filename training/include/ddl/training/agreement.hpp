// What ranks find out and decide together, so that all of them go the same way: a fault of one rank, a mean, a weight.
#ifndef DDL_TRAINING_AGREEMENT_HPP
#define DDL_TRAINING_AGREEMENT_HPP

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ddl/ddl.hpp"

namespace ddl::training {

/// Root's bytes, on every rank: anything that the program can write as bytes and read again. Collective.
inline std::string broadcast_bytes(Context& context, std::string bytes, int root = 0,
                                   const CallOptions& options = {}) {
  std::uint64_t size = bytes.size();
  context.broadcast(&size, 1, root, options);
  bytes.resize(static_cast<std::size_t>(size));
  context.broadcast(bytes.data(), bytes.size(), root, options);
  return bytes;
}

/// Every rank's bytes, by rank, on every rank. Collective.
inline std::vector<std::string> gather_bytes(Context& context, const std::string& bytes,
                                             const CallOptions& options = {}) {
  const std::vector<std::uint64_t> sizes =
      context.allgather(std::vector<std::uint64_t>{bytes.size()}, options);
  std::string all(static_cast<std::size_t>(ddl::detail::sum_of(sizes)), '\0');
  context.allgatherv(bytes.data(), all.data(), sizes.data(), options);
  std::vector<std::string> parts;
  std::size_t at = 0;
  for (const std::uint64_t size : sizes) {
    parts.push_back(all.substr(at, static_cast<std::size_t>(size)));
    at += static_cast<std::size_t>(size);
  }
  return parts;
}

/// Throws on all ranks, if one has a problem, the problem of the first: an Error with this status. So no rank goes on
/// alone, and waits for the others for ever. problem: empty: this rank has none. Collective.
inline void throw_on_all(Context& context, const std::string& problem, ddl_status status = DDL_ERROR_MISMATCH,
                         const CallOptions& options = {}) {
  std::uint8_t has_problem = problem.empty() ? 0 : 1;
  context.allreduce(&has_problem, 1, Op::max, options);
  if (has_problem == 0) return;
  for (const std::string& one : gather_bytes(context, problem, options)) {
    if (!one.empty()) throw Error(status, one);
  }
}

/// Whether any rank says so. Collective.
inline bool any_rank(Context& context, bool here, const CallOptions& options = {}) {
  std::uint8_t flag = here ? 1 : 0;
  context.allreduce(&flag, 1, Op::max, options);
  return flag != 0;
}

/// The mean of each metric over the ranks. All ranks give the same names: otherwise they all throw an Error that says
/// which name only some of them have. Collective.
inline std::map<std::string, double> average_metrics(Context& context,
                                                     const std::map<std::string, double>& metrics,
                                                     const CallOptions& options = {}) {
  std::string names;
  std::vector<double> values;
  for (const auto& [name, value] : metrics) {
    names += name + '\n';
    values.push_back(value);
  }
  const std::string first = broadcast_bytes(context, names, 0, options);
  std::string problem;
  if (names != first) {
    problem = "the ranks have different metrics: rank " + std::to_string(context.rank()) + " has \"" + names +
              "\" and the first one \"" + first + "\"";
    for (char& c : problem) c = c == '\n' ? ' ' : c;
  }
  throw_on_all(context, problem, DDL_ERROR_MISMATCH, options);
  context.allreduce(values, Op::average, options);
  std::map<std::string, double> means;
  std::size_t i = 0;
  for (const auto& [name, value] : metrics) means[name] = values[i++];
  return means;
}

/// With what this rank multiplies the mean loss of its samples, if ranks have different numbers of them: then the
/// average of the ranks' gradients is the gradient of the mean over all samples, instead of a mean of means. 1 if all
/// ranks have equally many; 0 if this one has none. Collective.
inline double batch_weight(Context& context, std::uint64_t samples, const CallOptions& options = {}) {
  const std::vector<std::uint64_t> of_each = context.allgather(std::vector<std::uint64_t>{samples}, options);
  const std::uint64_t all = ddl::detail::sum_of(of_each);
  ddl::detail::require(all > 0, "no rank has a sample in this batch");
  return static_cast<double>(samples) * static_cast<double>(of_each.size()) / static_cast<double>(all);
}

/// The factor by which losses of 16-bit training are multiplied, so that small gradients do not vanish (Micikevicius et
/// al. 2018). It doubles after 2,000 good steps in a row and halves after an overflow. It is the same on all ranks.
class LossScale {
 public:
  double scale = 65536.0;
  double growth = 2.0;
  double backoff = 0.5;
  std::uint64_t good_steps_to_growth = 2000;
  std::uint64_t good_steps = 0;  ///< in a row; belongs into a checkpoint, as scale does

  /// After the gradients were averaged: whether to make the step. If one rank has found infinity or NaN, no rank makes
  /// it. Before the step the gradients have to be divided by the scale that they were computed with. Collective.
  bool step_is_good(Context& context, bool overflows_here, const CallOptions& options = {}) {
    const bool is_good = !any_rank(context, overflows_here, options);
    if (!is_good) {
      scale *= backoff;
      good_steps = 0;
    } else if (++good_steps == good_steps_to_growth) {
      scale *= growth;
      good_steps = 0;
    }
    return is_good;
  }
};

/// Whether values have an infinity or a NaN. Without branches, so that compilers make vector code of it.
template <class T>
bool overflows(const T* values, std::size_t count) {
  bool all_finite = true;
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = static_cast<double>(values[i]);
    all_finite = all_finite & (value - value == 0);
  }
  return !all_finite;
}

/// What gradients are multiplied with so that their norm is at most this (Pascanu et al. 2013), as PyTorch's
/// clip_grad_norm_() counts it. 1 if the norm is smaller.
inline double clip_factor(double norm, double max_norm) {
  const double factor = max_norm / (norm + 1e-6);
  return factor < 1.0 ? factor : 1.0;
}

}  // namespace ddl::training

#endif  // DDL_TRAINING_AGREEMENT_HPP
