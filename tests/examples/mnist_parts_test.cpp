// The parts of examples/mnist, without ranks: its files of images, its digits, its network.
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "examples/mnist/digits.h"
#include "examples/mnist/network.h"
#include "examples/scratch_directory.h"
#include "support/catch.h"

using namespace ddl::test;
using Catch::Contains;

namespace {

std::string number(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// Says why reading fails.
template <class Read>
std::string problem_of(Read read) {
  try {
    read();
  } catch (const mnist::BadFile& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("an IDX file is read with its shape") {
  const ScratchDirectory scratch;
  const std::string path = scratch.file("values");
  write(path, number(0x802) + number(2) + number(3) + "abcdef");
  const mnist::Idx idx = mnist::read_idx(path, 2);
  CHECK(idx.shape == std::vector<std::uint32_t>{2, 3});
  CHECK(idx.values == std::vector<std::uint8_t>{'a', 'b', 'c', 'd', 'e', 'f'});
}

TEST_CASE("an IDX file that is not right is refused with its name and the reason") {
  const ScratchDirectory scratch;
  const std::string path = scratch.file("values");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", " is no IDX file: it has 0 bytes, and its header alone would have 12"},
      {number(0x802) + number(2), "it has 8 bytes, and its header alone would have 12"},
      {"some text of a person", " is no IDX file of 2 dimensions: it begins with 0x736f6d65, not 0x00000802"},
      {number(0x803) + number(2) + number(3) + "abcdef", "it begins with 0x00000803, not 0x00000802"},
      {number(0xd02) + number(2) + number(3) + "abcdef", "it begins with 0x00000d02, not 0x00000802"},
      // With the lowest byte first, as some programs of other processors write.
      {std::string("\x02\x08\0\0", 4) + number(2) + number(3) + "abcdef", "it begins with 0x02080000"},
      {number(0x802) + number(2) + number(3) + "abcde", " has 5 values behind its header, which says 2 x 3"},
      {number(0x802) + number(2) + number(3) + "abcdefg",
       " has 7 values behind its header, which says 2 x 3"},
      {number(0x802) + number(0) + number(3), " has 0 values behind its header, which says 0 x 3"},
      // 2^16 * 2^16 values are 0 in 32 bits.
      {number(0x802) + number(65536) + number(65536), " has 0 values behind its header, which says 65536"},
      {number(0x802) + number(0xffffffff) + number(0xffffffff) + "x", "4294967295 x 4294967295"},
      {"\x1f\x8b and what is packed", " is packed by gzip: unpack it with gunzip"},
  };
  for (const auto& [bytes, reason] : cases) {
    write(path, bytes);
    CHECK_THAT(problem_of([&] { mnist::read_idx(path, 2); }), Contains(path) && Contains(reason));
  }
  CHECK(problem_of([&] { mnist::read_idx(scratch.file("nothing"), 1); }) ==
        "there is no file " + scratch.file("nothing"));
  CHECK_THAT(problem_of([&] { mnist::read_idx(scratch.path().string(), 1); }), Contains("there is no file"));
}

TEST_CASE("no change of a byte in the header of an IDX file is read as something else") {
  const ScratchDirectory scratch;
  const std::string path = scratch.file("values");
  const std::string right = number(0x803) + number(3) + number(2) + number(2) + "0123456789ab";
  for (std::size_t at = 0; at < 16; ++at) {
    for (int changed = 0; changed < 256; ++changed) {
      std::string bytes = right;
      bytes[at] = static_cast<char>(changed);
      write(path, bytes);
      const std::string problem = problem_of([&] { mnist::read_idx(path, 3); });
      if ((problem == "nothing") != (bytes == right)) FAIL_CHECK(at << " " << changed << ": " << problem);
    }
  }
}

TEST_CASE("images and labels have to belong together") {
  const ScratchDirectory scratch;
  const std::string folder = scratch.path().string();
  const std::string image(mnist::kPixels, 'x');
  const auto images = [&](const std::string& bytes) {
    write(scratch.file("train-images-idx3-ubyte"), bytes);
  };
  const auto labels = [&](const std::string& bytes) {
    write(scratch.file("train-labels-idx1-ubyte"), bytes);
  };
  const auto problem = [&] { return problem_of([&] { mnist::read_digits(folder, "train"); }); };

  CHECK_THAT(problem(), Contains("there is no file " + scratch.file("train-images-idx3-ubyte")));
  images(number(0x803) + number(2) + number(28) + number(28) + image + image);
  CHECK_THAT(problem(), Contains("there is no file " + scratch.file("train-labels-idx1-ubyte")));
  labels(number(0x801) + number(2) + std::string("\x09\x00", 2));
  const mnist::Digits digits = mnist::read_digits(folder, "train");
  CHECK(digits.count() == 2);
  CHECK(digits.pixels.size() == 2 * mnist::kPixels);
  CHECK(digits.labels == std::vector<std::uint8_t>{9, 0});

  labels(number(0x801) + number(2) + "\x09\x0a");
  CHECK_THAT(problem(), Contains("train-labels-idx1-ubyte has the label 10"));
  labels(number(0x801) + number(1) + "\x09");
  CHECK_THAT(problem(), Contains("has 2 images, and ") && Contains("train-labels-idx1-ubyte has 1 labels"));
  images(number(0x803) + number(4) + number(14) + number(28) + image + image);
  CHECK_THAT(problem(), Contains("has images of 14 x 28; those of MNIST are 28 x 28"));
  CHECK(problem_of([] { mnist::read_digits("/nonexistent-directory", "train"); }) ==
        "there is no directory /nonexistent-directory");
}

TEST_CASE("digits are drawn alike by the same seed, and a longer set begins with a shorter one") {
  const mnist::Digits some = mnist::draw_digits(20, 7), more = mnist::draw_digits(200, 7);
  CHECK(std::equal(some.pixels.begin(), some.pixels.end(), more.pixels.begin()));
  CHECK(std::equal(some.labels.begin(), some.labels.end(), more.labels.begin()));
  CHECK(mnist::draw_digits(20, 8).pixels != some.pixels);
  std::vector<int> counts(mnist::kClasses, 0);
  for (const std::uint8_t label : more.labels) ++counts[label];
  for (const int count : counts) CHECK(count > 5);
  // Ink in the middle, none at the edge but noise.
  double middle = 0.0, corner = 0.0;
  for (std::uint64_t i = 0; i < more.count(); ++i) {
    for (std::size_t y = 0; y < 14; ++y)
      for (std::size_t x = 0; x < 14; ++x)
        middle += more.pixels[i * mnist::kPixels + (y + 7) * mnist::kSide + x + 7];
    for (std::size_t y = 0; y < 2; ++y)
      for (std::size_t x = 0; x < 2; ++x) corner += more.pixels[i * mnist::kPixels + y * mnist::kSide + x];
  }
  CHECK(middle / 196 > 1.5 * corner / 4);
}

TEST_CASE("the gradient of the network of digits is that of differences") {
  mnist::Network network({4, 5, 3}, 3);
  std::vector<ddl::training::Parameter> parameters = network.parameters();
  std::vector<std::vector<float>> gradients;
  for (const auto& one : parameters) gradients.emplace_back(one.count, 0.0f);
  for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i].gradient = gradients[i].data();
  network.use(parameters);
  Eigen::MatrixXf images(4, 2);
  images << 0.3f, 0.9f, -0.2f, 0.4f, 0.8f, -0.7f, 0.1f, 0.6f;
  const std::vector<std::uint8_t> labels = {2, 0};
  std::vector<std::size_t> order;
  network.backward(images, labels, [&](std::size_t number) { order.push_back(number); });
  CHECK(order == std::vector<std::size_t>{3, 2, 1, 0});
  const std::vector<std::vector<float>> computed = gradients;
  constexpr float kStep = 1e-2f;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    for (std::size_t j = 0; j < parameters[i].count; ++j) {
      float& weight = static_cast<float*>(parameters[i].data)[j];
      const float kept = weight;
      weight = kept + kStep;
      const double above = network.backward(images, labels, {});
      weight = kept - kStep;
      const double below = network.backward(images, labels, {});
      weight = kept;
      INFO(parameters[i].name << " " << j);
      CHECK(computed[i][j] == Approx((above - below) / (2.0 * kStep)).margin(2e-3));
    }
  }
}

TEST_CASE("the loss of a network without knowledge is log 10, also with large outputs") {
  mnist::Network network({2, 10}, 1);
  std::vector<ddl::training::Parameter> parameters = network.parameters();
  std::vector<std::vector<float>> gradients;
  for (const auto& one : parameters) gradients.emplace_back(one.count, 0.0f);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    parameters[i].gradient = gradients[i].data();
    // The same for all classes: exp(1000) is infinite in float.
    for (std::size_t j = 0; j < parameters[i].count; ++j)
      static_cast<float*>(parameters[i].data)[j] = i == 0 ? 0.0f : 1000.0f;
  }
  network.use(parameters);
  CHECK(network.backward(Eigen::MatrixXf::Ones(2, 3), {0, 4, 9}, {}) == Approx(std::log(10.0)));
}
