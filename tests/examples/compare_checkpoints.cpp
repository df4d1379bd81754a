// Prints by how much the elements of two checkpoints of float tensors differ at most, and how many tensors there are:
//
//   compare_checkpoints FOLDER OTHER
//
// A program of its own, because libddl's header and base/ each have a class ddl::Error.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include <ddl/training/checkpoint.hpp>

namespace {

void compare(const std::string& left_folder, const std::string& right_folder) {
  ddl::training::Checkpoint left(left_folder), right(right_folder);
  if (left.tensors().size() != right.tensors().size())
    throw std::runtime_error("the tensors are not the same");
  double largest = 0.0;
  for (const auto& one : left.tensors()) {
    const auto values = left.values<float>(one.first), others = right.values<float>(one.first);
    if (values.size() != others.size()) throw std::runtime_error(one.first + " has another size");
    for (std::size_t i = 0; i < values.size(); ++i)
      largest = std::max(largest, std::abs(static_cast<double>(values[i]) - static_cast<double>(others[i])));
  }
  std::printf("%zu tensors, largest difference %.9e\n", left.tensors().size(), largest);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 3) throw std::runtime_error("usage: compare_checkpoints FOLDER OTHER");
    compare(argv[1], argv[2]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "compare_checkpoints: %s\n", error.what());
    return 1;
  }
}
