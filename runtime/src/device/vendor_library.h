// The functions of a vendor's library, which is loaded at run time.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <span>
#include <string>

#include "base/error.h"

namespace ddl::runtime {

/// A function that is looked for, and where its address goes.
struct VendorSymbol {
  const char* name;
  void** place;
  bool is_optional = false;
};

template <class Function>
VendorSymbol needed(const char* name, Function*& place) {
  return {name, reinterpret_cast<void**>(&place), false};
}
/// The place stays null if the library is older than the function.
template <class Function>
VendorSymbol optional(const char* name, Function*& place) {
  return {name, reinterpret_cast<void**>(&place), true};
}

/// kUnavailable names a function that the library lacks.
inline Status load_symbols(void* library, std::span<const VendorSymbol> symbols) {
  for (const VendorSymbol& symbol : symbols) {
    *symbol.place = ::dlsym(library, symbol.name);
    if (*symbol.place == nullptr && !symbol.is_optional)
      return fail(ErrorCode::kUnavailable, std::string("it has no ") + symbol.name);
  }
  return {};
}

/// "GPU-5a8c1b3e-...", as nvidia-smi prints the bytes.
std::string uuid_text(std::span<const unsigned char> bytes);

}  // namespace ddl::runtime
