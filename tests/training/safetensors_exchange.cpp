// Files of tensors for a program in Python, and from it:
//
//   safetensors_exchange write FILE FOLDER   writes the tensors below into the file, and a checkpoint of two ranks
//   safetensors_exchange check FILE          exit status 0: the file has them, whoever wrote it
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "ddl/training/checkpoint.hpp"

namespace {

using namespace ddl::training;  // NOLINT(google-build-using-namespace): this program is about nothing else

struct Values {
  std::vector<float> weight{0.5F, -1.25F, 3.0F, 1e-40F, INFINITY, 7.0F};
  std::vector<double> rate{0.1};
  std::vector<std::int64_t> steps{-1, INT64_MAX, INT64_MIN};
  std::vector<std::uint8_t> bytes{0, 127, 255};
  std::vector<ddl::float16> half{ddl::float16(1.5F), ddl::float16(-65504.0F)};
  std::vector<std::uint16_t> empty;
};

void write(const std::string& file, const std::string& folder) {
  const Values v;
  const bool flags[] = {true, false};
  write_safetensors(
      file,
      {tensor_view("layer.weight", v.weight.data(), {2, 3}), tensor_view("rate", v.rate.data(), {}),
       tensor_view("steps", v.steps.data(), {3}), tensor_view("bytes", v.bytes.data(), {1, 3, 1}),
       tensor_view("half", v.half.data(), {2}), tensor_view("empty", v.empty.data(), {0, 4}),
       tensor_view("flags \"\\\n\xC3\xA4", flags, {2})},
      {{"format", "np"}, {"text", "a\"\\\n\xC3\xA4"}});
  CheckpointWriter writer(folder);
  const std::string first =
      write_part(folder, writer.id(), 0, 2, {shard("w", v.weight.data(), {2, 3}, 0, 4)});
  const std::string second =
      write_part(folder, writer.id(), 1, 2,
                 {shard("w", v.weight.data() + 4, {2, 3}, 4, 6), shard("b", v.rate.data(), {1}, 0, 1)});
  writer.finish({first, second}, {});
}

template <class T>
void check(const SafetensorsFile& file, const std::string& name, const std::vector<T>& values,
           const std::vector<std::uint64_t>& shape) {
  const std::vector<T> found = file.values<T>(name);
  bool is_right = file.tensor(name).shape == shape && found.size() == values.size();
  for (std::size_t i = 0; is_right && i < values.size(); ++i) is_right = found[i] == values[i];
  if (!is_right) throw std::runtime_error(name + " is wrong");
}

void check(const std::string& path) {
  const Values v;
  const SafetensorsFile file(path);
  check(file, "layer.weight", v.weight, {2, 3});
  check(file, "rate", v.rate, {});
  check(file, "steps", v.steps, {3});
  check(file, "bytes", v.bytes, {1, 3, 1});
  check(file, "half", v.half, {2});
  check(file, "empty", v.empty, {0, 4});
  bool flags[2] = {};
  file.read("flags \"\\\n\xC3\xA4", 0, 2, flags);
  if (!flags[0] || flags[1]) throw std::runtime_error("the flags are wrong");
  if (file.metadata() != Metadata{{"format", "np"}, {"text", "a\"\\\n\xC3\xA4"}})
    throw std::runtime_error("the metadata are wrong");
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (words.size() == 3 && words[0] == "write") {
      write(words[1], words[2]);
    } else if (words.size() == 2 && words[0] == "check") {
      check(words[1]);
    } else {
      throw std::runtime_error("usage: safetensors_exchange write FILE FOLDER | check FILE");
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
