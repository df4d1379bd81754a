// The step of an optimizer on gradients of all ranks: on every rank the whole step, or on each a slice of it (ZeRO).
#ifndef DDL_TRAINING_OPTIMIZER_HPP
#define DDL_TRAINING_OPTIMIZER_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ddl/ddl.hpp"
#include "ddl/training/agreement.hpp"
#include "ddl/training/gradients.hpp"
#include "ddl/training/parameters.hpp"
#include "ddl/training/update.hpp"

namespace ddl::training {

namespace detail {

/// Calls function with a pointer of the type's elements: of float or double.
template <class Function>
void with_type(ddl_dtype dtype, Function function) {
  if (dtype == DDL_FLOAT64) {
    function(static_cast<double*>(nullptr));
  } else {
    function(static_cast<float*>(nullptr));
  }
}

template <class T>
double sum_of_squares(const T* values, std::size_t count) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i)
    sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return sum;
}

template <class T>
void scale(T* values, std::size_t count, double factor) {
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<T>(static_cast<double>(values[i]) * factor);
}

}  // namespace detail

/// An optimizer whose ranks all make the whole step, on float or double parameters. Rule: of update.hpp. The program may
/// change rule between steps, its rate above all.
template <class Rule>
class Optimizer {
 public:
  /// Collective, as Gradients is.
  Optimizer(Context& context, std::vector<Parameter> parameters, Rule rule_of_steps,
            GradientOptions options = {})
      : rule(std::move(rule_of_steps)), gradients_(context, std::move(parameters), std::move(options)) {
    for (const Parameter& one : gradients_.parameters()) {
      ddl::detail::require(one.dtype == DDL_FLOAT32 || one.dtype == DDL_FLOAT64,
                           "Optimizer updates float and double; ShardedOptimizer has 16 bits, too");
      for (std::size_t i = 0; i < rule.slots().size(); ++i) state_.emplace_back(one.bytes(), std::uint8_t{0});
    }
  }

  Rule rule;
  std::uint64_t steps = 0;  ///< that were made; belongs into a checkpoint
  double clip_norm = 0.0;   ///< the largest norm of all gradients together; 0: any

  /// Whose memory of gradients the backward pass writes.
  const std::vector<Parameter>& parameters() const { return gradients_.parameters(); }
  void ready(std::size_t number) { gradients_.ready(number); }
  void set_to_zero() { gradients_.set_to_zero(); }

  /// Waits for the gradients of all ranks, and updates the parameters. scale: with what the losses were multiplied.
  void step(double loss_scale = 1.0) {
    gradients_.finish();
    double factor = 1.0 / loss_scale;
    if (clip_norm > 0) {
      double squares = 0;
      for (const Parameter& one : parameters()) {
        detail::with_type(one.dtype, [&](auto* type) {
          squares += detail::sum_of_squares(static_cast<decltype(type)>(one.gradient), one.count);
        });
      }
      factor *= clip_factor(std::sqrt(squares) / loss_scale, clip_norm);
    }
    ++steps;
    const std::size_t slots = rule.slots().size();
    for (std::size_t i = 0; i < parameters().size(); ++i) {
      const Parameter& one = parameters()[i];
      detail::with_type(one.dtype, [&](auto* type) {
        using T = std::remove_pointer_t<decltype(type)>;
        if (factor != 1.0) detail::scale(static_cast<T*>(one.gradient), one.count, factor);
        std::vector<T*> kept;
        for (std::size_t slot = 0; slot < slots; ++slot)
          kept.push_back(reinterpret_cast<T*>(state_[i * slots + slot].data()));
        rule.apply(static_cast<T*>(one.data), static_cast<const T*>(one.gradient), kept.data(), one.count,
                   steps);
      });
    }
  }

  /// What the rule keeps, for a checkpoint: every rank has all of it. Names are "PARAMETER.SLOT".
  std::vector<TensorView> state() const {
    std::vector<TensorView> views;
    for_each_slot(
        [&](const std::string& name, const Parameter& one, const std::vector<std::uint8_t>& values) {
          views.push_back({name, one.dtype, {one.count}, values.data()});
        });
    return views;
  }

  /// Gives all ranks root's state, and the number of steps: where root alone has read a checkpoint, together with
  /// broadcast_parameters(). Collective.
  void broadcast_state(Context& context, int root = 0, const CallOptions& options = {}) {
    context.broadcast(&steps, 1, root, options);
    for (std::vector<std::uint8_t>& slot : state_) context.broadcast(slot, root, options);
  }

  /// Fills state() from a source, as load_parameters() does.
  template <class Source>
  void load_state(Source& source) {
    for_each_slot(
        [&](const std::string& name, const Parameter& one, const std::vector<std::uint8_t>& values) {
          auto* const memory = const_cast<std::uint8_t*>(values.data());
          detail::load_piece(source, {name, one.dtype, {one.count}, 0, one.count, memory}, memory);
        });
  }

 private:
  template <class Function>
  void for_each_slot(Function function) const {
    const std::vector<std::string> slots = rule.slots();
    for (std::size_t i = 0; i < state_.size(); ++i) {
      const Parameter& one = parameters()[i / slots.size()];
      function(one.name + "." + slots[i % slots.size()], one, state_[i]);
    }
  }

  Gradients gradients_;
  std::vector<std::vector<std::uint8_t>> state_;  // a vector for each parameter and slot
};

}  // namespace ddl::training

#endif  // DDL_TRAINING_OPTIMIZER_HPP
