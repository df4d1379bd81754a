// Optimizers that change each element by its own gradient: as values, with the formulas of PyTorch's.
//
// An update of a part of the elements gives them the same bits as an update of all: every operation is one of IEEE 754,
// in the order in which it is written. So an optimizer can be cut among ranks without changing the result. This needs a
// compiler that does not fuse or reorder: no -ffast-math (refused below); fusing is switched off here.
#ifndef DDL_TRAINING_UPDATE_HPP
#define DDL_TRAINING_UPDATE_HPP

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#if defined(__FAST_MATH__)
#error "ddl/training/update.hpp needs a compiler that keeps to IEEE 754: omit -ffast-math for this file"
#endif

#if defined(__clang__)
#define DDL_TRAINING_EXACT
#define DDL_TRAINING_EXACT_BODY _Pragma("clang fp contract(off)")
#else
#define DDL_TRAINING_EXACT __attribute__((optimize("O3", "fp-contract=off"), noinline))
#define DDL_TRAINING_EXACT_BODY
#endif
// A function of <cmath> has other options than these ones here, and would be called for each element.
#define DDL_TRAINING_SQRT(value) \
  (sizeof(T) == 4 ? static_cast<T>(__builtin_sqrtf(value)) : static_cast<T>(__builtin_sqrt(value)))

namespace ddl::training {

// Each rule has slots(), the names of what it keeps for each element, and apply(), which updates count elements of w by
// the gradients g; slots are the arrays of what is kept, zeros at first, and step counts from 1. T: float or double.

/// Stochastic gradient descent: u = momentum u + (1 - dampening) g, w -= rate u. In the first step u = g.
struct Sgd {
  double rate = 0.01;
  double momentum = 0.0;
  double dampening = 0.0;
  double weight_decay = 0.0;
  bool nesterov = false;  ///< w -= rate (g + momentum u)

  std::vector<std::string> slots() const {
    return momentum == 0.0 ? std::vector<std::string>{} : std::vector<std::string>{"momentum_buffer"};
  }

  template <class T>
  DDL_TRAINING_EXACT void apply(T* __restrict w, const T* __restrict g, T* const* slots, std::size_t count,
                                std::uint64_t step) const {
    DDL_TRAINING_EXACT_BODY
    const T lr = static_cast<T>(rate), decay = static_cast<T>(weight_decay), m = static_cast<T>(momentum);
    const T taken = step == 1 ? T{1} : static_cast<T>(1.0 - dampening);
    if (momentum == 0.0) {
      for (std::size_t i = 0; i < count; ++i) w[i] = w[i] - lr * (g[i] + decay * w[i]);
      return;
    }
    T* const __restrict u = slots[0];
    for (std::size_t i = 0; i < count; ++i) {
      const T gradient = g[i] + decay * w[i];
      u[i] = m * u[i] + taken * gradient;
      w[i] = w[i] - lr * (nesterov ? gradient + m * u[i] : u[i]);
    }
  }
};

/// Adam (Kingma, Ba 2015); decoupled: AdamW (Loshchilov, Hutter 2019).
struct Adam {
  double rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;
  bool decoupled = false;  ///< the decay of weights is no part of the gradient

  std::vector<std::string> slots() const { return {"exp_avg", "exp_avg_sq"}; }

  template <class T>
  DDL_TRAINING_EXACT void apply(T* __restrict w, const T* __restrict g, T* const* slots, std::size_t count,
                                std::uint64_t step) const {
    DDL_TRAINING_EXACT_BODY
    const auto steps = static_cast<double>(step);
    const T size = static_cast<T>(rate / (1.0 - std::pow(beta1, steps)));
    const T root = static_cast<T>(std::sqrt(1.0 - std::pow(beta2, steps)));
    const T b1 = static_cast<T>(beta1), b2 = static_cast<T>(beta2), c1 = static_cast<T>(1.0 - beta1),
            c2 = static_cast<T>(1.0 - beta2), eps = static_cast<T>(epsilon);
    const T decay = decoupled ? T{0} : static_cast<T>(weight_decay);
    const T kept = decoupled ? static_cast<T>(1.0 - rate * weight_decay) : T{1};
    T* const __restrict mean = slots[0];
    T* const __restrict squares = slots[1];
    for (std::size_t i = 0; i < count; ++i) {
      const T gradient = g[i] + decay * w[i];
      mean[i] = b1 * mean[i] + c1 * gradient;
      squares[i] = b2 * squares[i] + c2 * gradient * gradient;
      w[i] = kept * w[i] - size * (mean[i] / (DDL_TRAINING_SQRT(squares[i]) / root + eps));
    }
  }
};

/// Adagrad (Duchi et al. 2011).
struct Adagrad {
  double rate = 0.01;
  double epsilon = 1e-10;
  double weight_decay = 0.0;

  std::vector<std::string> slots() const { return {"sum"}; }

  template <class T>
  DDL_TRAINING_EXACT void apply(T* __restrict w, const T* __restrict g, T* const* slots, std::size_t count,
                                std::uint64_t) const {
    DDL_TRAINING_EXACT_BODY
    const T lr = static_cast<T>(rate), decay = static_cast<T>(weight_decay), eps = static_cast<T>(epsilon);
    T* const __restrict sum = slots[0];
    for (std::size_t i = 0; i < count; ++i) {
      const T gradient = g[i] + decay * w[i];
      sum[i] = sum[i] + gradient * gradient;
      w[i] = w[i] - lr * (gradient / (DDL_TRAINING_SQRT(sum[i]) + eps));
    }
  }
};

/// RMSprop (Tieleman, Hinton 2012), without momentum.
struct RmsProp {
  double rate = 0.01;
  double alpha = 0.99;
  double epsilon = 1e-8;
  double weight_decay = 0.0;

  std::vector<std::string> slots() const { return {"square_avg"}; }

  template <class T>
  DDL_TRAINING_EXACT void apply(T* __restrict w, const T* __restrict g, T* const* slots, std::size_t count,
                                std::uint64_t) const {
    DDL_TRAINING_EXACT_BODY
    const T lr = static_cast<T>(rate), decay = static_cast<T>(weight_decay), eps = static_cast<T>(epsilon),
            a = static_cast<T>(alpha), b = static_cast<T>(1.0 - alpha);
    T* const __restrict squares = slots[0];
    for (std::size_t i = 0; i < count; ++i) {
      const T gradient = g[i] + decay * w[i];
      squares[i] = a * squares[i] + b * gradient * gradient;
      w[i] = w[i] - lr * (gradient / (DDL_TRAINING_SQRT(squares[i]) + eps));
    }
  }
};

}  // namespace ddl::training

#undef DDL_TRAINING_SQRT
#undef DDL_TRAINING_EXACT
#undef DDL_TRAINING_EXACT_BODY

#endif  // DDL_TRAINING_UPDATE_HPP
