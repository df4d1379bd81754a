#include "timeline/gzip_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/fd.h"
#include "base/shared_library.h"

namespace ddl::timeline {
namespace {

// Of zlib.h.
constexpr int kErrno = -1;
constexpr int kEndsTooEarly = -5;
constexpr unsigned kBuffer = 1U << 17;

Result<SharedLibrary> load_zlib(const std::string& name) {
  auto library = SharedLibrary::load(name);
  if (library) return *std::move(library);
  return fail(ErrorCode::kUnavailable, "zlib cannot be loaded: " + library.error().message(),
              "install zlib, the library libz.so.1");
}

tl::unexpected<Error> not_zlib(const SharedLibrary& library) {
  return fail(ErrorCode::kUnavailable, library.path() + " is not zlib",
              "install zlib, the library libz.so.1");
}

}  // namespace

Result<std::unique_ptr<GzipFile>> GzipFile::open(const std::string& path, const std::string& zlib) {
  DDL_ASSIGN(library, load_zlib(zlib));
  auto* const open = library.function<void*(int, const char*)>("gzdopen");
  auto* const set_buffer = library.function<int(void*, unsigned)>("gzbuffer");
  std::unique_ptr<GzipFile> file(new GzipFile);
  file->read_ = library.function<int(void*, void*, unsigned)>("gzread");
  file->error_ = library.function<const char*(void*, int*)>("gzerror");
  file->close_ = library.function<int(void*)>("gzclose");
  if (open == nullptr || set_buffer == nullptr || file->read_ == nullptr || file->error_ == nullptr ||
      file->close_ == nullptr)
    return not_zlib(library);

  // Without O_NONBLOCK, opening a FIFO waits for a writer.
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return fail_errno("open");
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return fail_errno("stat");
  if (!S_ISREG(status.st_mode)) return refuse("it is not a regular file");
  file->file_ = open(fd.get(), "rb");
  if (file->file_ == nullptr) return fail(ErrorCode::kSystem, "zlib cannot begin");
  (void)fd.release();  // gzclose() closes it
  set_buffer(file->file_, kBuffer);
  return file;
}

GzipFile::~GzipFile() {
  if (file_ != nullptr) close_(file_);
}

Result<std::size_t> GzipFile::read(std::span<char> buffer) {
  constexpr std::size_t kMost = std::size_t{1} << 30;  // gzread() returns an int
  errno = 0;
  const int count = read_(file_, buffer.data(), static_cast<unsigned>(std::min(buffer.size(), kMost)));
  if (count > 0) return static_cast<std::size_t>(count);
  int number = 0;
  error_(file_, &number);
  if (count == 0 && number != kEndsTooEarly) return std::size_t{0};
  if (number == kErrno && errno != 0) return fail_errno("read");
  return refuse(number == kEndsTooEarly ? "its compressed data end too early"
                                        : "its compressed data are damaged");
}

Result<std::string> deflated(std::string_view bytes, const std::string& zlib) {
  DDL_ASSIGN(library, load_zlib(zlib));
  using Bytes = unsigned char;
  auto* const bound = library.function<unsigned long(unsigned long)>("compressBound");
  auto* const compress =
      library.function<int(Bytes*, unsigned long*, const Bytes*, unsigned long, int)>("compress2");
  if (bound == nullptr || compress == nullptr) return not_zlib(library);
  constexpr int kLevel = 6;
  std::string result(bound(bytes.size()), '\0');
  unsigned long size = result.size();
  if (compress(reinterpret_cast<Bytes*>(result.data()), &size, reinterpret_cast<const Bytes*>(bytes.data()),
               bytes.size(), kLevel) != 0)
    return fail(ErrorCode::kSystem, "zlib failed to compress");
  result.resize(size);
  return result;
}

}  // namespace ddl::timeline
