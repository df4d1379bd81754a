// Passes every file of the given folders to a fuzzer's entry point, in place of libFuzzer's main. As in libFuzzer, a
// finding is a crash or a sanitizer's report; if there are no seeds, that is a failure.
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

int replay(const char* folder) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    // Printed before the call, so that after a crash the last line names the seed.
    std::printf("%s: %zu bytes\n", entry.path().c_str(), bytes.size());
    std::fflush(stdout);
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    ++count;
  }
  return count;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    int count = 0;
    for (int i = 1; i < argc; ++i) count += replay(argv[i]);
    if (count > 0) return 0;
    std::fprintf(stderr, "%s: no seeds were given\n", argv[0]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
  }
  return 1;
}
