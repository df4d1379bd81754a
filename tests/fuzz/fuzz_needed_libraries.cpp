// Files in place of shared libraries: none is read beyond its end, and every name is a part of it.
#include <cstdint>
#include <string>

#include "fuzz/require.h"
#include "runtime/src/bootstrap/needed_libraries.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string file(reinterpret_cast<const char*>(data), size);
  for (const std::string& name : ddl::runtime::needed_libraries(file)) {
    require(name.find('\0') == name.npos);
    require(file.find(name + '\0') != file.npos);
  }
  return 0;
}
