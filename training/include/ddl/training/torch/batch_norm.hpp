// Batch normalisation of libtorch by the means of all ranks' batches.
#ifndef DDL_TRAINING_TORCH_BATCH_NORM_HPP
#define DDL_TRAINING_TORCH_BATCH_NORM_HPP

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ddl/ddl.hpp"

namespace ddl::training {

namespace detail {

/// With the numbers of samples that ranks have, which may differ. Sums are of double, shifted by the running mean, so
/// that neither 16-bit inputs nor means far from zero cost precision.
class SyncBatchNormFunction : public torch::autograd::Function<SyncBatchNormFunction> {
 public:
  /// What forward() is given, and returns, beside tensors.
  struct Means {
    Context* context;
    std::string name;
    torch::Tensor shift;  ///< of double, for each channel
    double epsilon;
    torch::Tensor mean, variance;  ///< results, of double
    double samples = 0;            ///< of all ranks
  };

  static torch::Tensor forward(torch::autograd::AutogradContext* saved, const torch::Tensor& input,
                               const torch::Tensor& weight, const torch::Tensor& bias, Means* given) {
    Means& means = *given;
    const torch::Tensor shifted = by_channel(input) - means.shift.unsqueeze(1);
    const torch::Tensor own = torch::full({1}, static_cast<double>(shifted.size(1)), shifted.options());
    torch::Tensor sums = torch::cat({shifted.sum(1), shifted.square().sum(1), own}).contiguous();
    add_up(*means.context, means.name + ".sums", sums);
    const std::int64_t channels = shifted.size(0);
    means.samples = sums[2 * channels].item<double>();
    if (means.samples < 2)
      throw Error(DDL_ERROR_INVALID_ARGUMENT,
                  "batch normalisation needs two values of each channel, of all ranks together");
    const torch::Tensor away = sums.slice(0, 0, channels) / means.samples;
    means.variance = sums.slice(0, channels, 2 * channels) / means.samples - away.square();
    means.mean = means.shift + away;
    const torch::Tensor deviation = (means.variance.clamp_min(0) + means.epsilon).rsqrt();
    const torch::Tensor normal = (shifted - away.unsqueeze(1)) * deviation.unsqueeze(1);
    saved->save_for_backward({normal, deviation, weight});
    saved->saved_data["batch"] =
        torch::IValue::make_capsule(c10::make_intrusive<Batch>(means.context, means.name, means.samples));
    torch::Tensor output = normal;
    if (weight.defined())
      output = normal * weight.to(torch::kFloat64).unsqueeze(1) + bias.to(torch::kFloat64).unsqueeze(1);
    return like(output, input);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* saved,
                                                 torch::autograd::variable_list gradients) {
    const auto tensors = saved->get_saved_variables();
    const torch::Tensor &normal = tensors[0], &deviation = tensors[1], &weight = tensors[2];
    const auto kept = saved->saved_data["batch"].toCapsule();
    const auto& batch = static_cast<const Batch&>(*kept);
    const torch::Tensor output = by_channel(gradients[0]);
    const torch::Tensor own_bias = output.sum(1), own_weight = (output * normal).sum(1);
    torch::Tensor sums = torch::cat({own_bias, own_weight}).contiguous();
    add_up(*batch.context, batch.name + ".gradients", sums);
    const std::int64_t channels = output.size(0);
    torch::Tensor scale = deviation;
    if (weight.defined()) scale = scale * weight.to(torch::kFloat64);
    const torch::Tensor input =
        scale.unsqueeze(1) * (output - (sums.slice(0, 0, channels) / batch.samples).unsqueeze(1) -
                              normal * (sums.slice(0, channels, 2 * channels) / batch.samples).unsqueeze(1));
    torch::Tensor to_weight, to_bias;
    if (weight.defined()) {
      to_weight = own_weight.to(weight.scalar_type());
      to_bias = own_bias.to(weight.scalar_type());
    }
    return {like(input, gradients[0]), to_weight, to_bias, torch::Tensor()};
  }

 private:
  /// What backward() needs beside tensors.
  struct Batch : torch::CustomClassHolder {
    Batch(Context* with, std::string called, double all)
        : context(with), name(std::move(called)), samples(all) {}
    Context* context;
    std::string name;
    double samples;
  };

  /// A row for each channel, which is dimension 1.
  static torch::Tensor by_channel(const torch::Tensor& tensor) {
    return tensor.to(torch::kFloat64).transpose(0, 1).reshape({tensor.size(1), -1});
  }
  static torch::Tensor like(const torch::Tensor& rows, const torch::Tensor& tensor) {
    std::vector<std::int64_t> sizes = tensor.sizes().vec();
    std::swap(sizes[0], sizes[1]);
    return rows.reshape(sizes).transpose(0, 1).contiguous().to(tensor.scalar_type());
  }
  static void add_up(Context& context, const std::string& name, torch::Tensor& sums) {
    AsyncOptions options;
    options.zeros_if_joined = true;
    torch::Tensor here = sums.cpu();  // the same tensor, unless it is on a GPU
    context
        .allreduce_async(name, here.data_ptr<double>(), static_cast<std::size_t>(here.numel()), Op::sum,
                         options)
        .get();
    if (!here.is_same(sums)) sums.copy_(here);
  }
};

}  // namespace detail

struct SyncBatchNormOptions {
  double eps = 1e-5;
  double momentum = 0.1;
  bool affine = true;
};

/// Like torch::nn::BatchNorm of any number of dimensions, but mean and variance are those of the samples of all ranks.
/// In evaluation it uses the running ones. All ranks are in training at the same time; gradients of weight and bias are
/// each rank's own, for the optimizer to average.
class SyncBatchNormImpl : public torch::nn::Module {
 public:
  /// name: the same on all ranks, of no other layer.
  SyncBatchNormImpl(Context& context, std::string name, std::int64_t channels,
                    SyncBatchNormOptions options = {})
      : context_(context), name_("batch_norm." + std::move(name)), options_(options) {
    running_mean = register_buffer("running_mean", torch::zeros({channels}));
    running_var = register_buffer("running_var", torch::ones({channels}));
    if (!options_.affine) return;
    weight = register_parameter("weight", torch::ones({channels}));
    bias = register_parameter("bias", torch::zeros({channels}));
  }

  torch::Tensor forward(const torch::Tensor& input) {
    if (!is_training()) {
      return torch::batch_norm(input, weight, bias, running_mean, running_var, false, options_.momentum,
                               options_.eps, false);
    }
    detail::SyncBatchNormFunction::Means means{&context_,    name_, running_mean.to(torch::kFloat64),
                                               options_.eps, {},    {}};
    torch::Tensor output = detail::SyncBatchNormFunction::apply(input, weight, bias, &means);
    const torch::NoGradGuard no_gradients;
    const double unbiased = means.samples / (means.samples - 1);
    running_mean.lerp_(means.mean.to(running_mean.scalar_type()), options_.momentum);
    running_var.lerp_((means.variance * unbiased).to(running_var.scalar_type()), options_.momentum);
    return output;
  }

  torch::Tensor weight, bias, running_mean, running_var;

 private:
  Context& context_;
  std::string name_;
  SyncBatchNormOptions options_;
};
TORCH_MODULE(SyncBatchNorm);

}  // namespace ddl::training

#endif  // DDL_TRAINING_TORCH_BATCH_NORM_HPP
