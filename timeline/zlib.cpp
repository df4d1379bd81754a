#include "timeline/zlib.h"

#include <type_traits>

#include "base/shared_library.h"

namespace ddl::timeline {

Result<Zlib> Zlib::load(const std::string& name) {
  const auto library = SharedLibrary::load(name);
  if (!library)
    return fail(ErrorCode::kUnavailable, "zlib cannot be loaded: " + library.error().message(),
                "install zlib, the library libz.so.1");
  Zlib zlib;
  bool is_complete = true;
  const auto find = [&](auto*& function, const char* symbol) {
    function = library->function<std::remove_reference_t<decltype(*function)>>(symbol);
    is_complete = is_complete && function != nullptr;
  };
  find(zlib.gzdopen, "gzdopen");
  find(zlib.gzbuffer, "gzbuffer");
  find(zlib.gzread, "gzread");
  find(zlib.gzwrite, "gzwrite");
  find(zlib.gzerror, "gzerror");
  find(zlib.gzclose, "gzclose");
  find(zlib.compress_bound, "compressBound");
  find(zlib.compress2, "compress2");
  if (!is_complete)
    return fail(ErrorCode::kUnavailable, library->path() + " is not zlib",
                "install zlib, the library libz.so.1");
  return zlib;
}

}  // namespace ddl::timeline
