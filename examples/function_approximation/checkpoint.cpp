#include "checkpoint.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace fit {
namespace {

// The file, in the byte order of the machine: magic, number of layer widths, widths, steps (all 64 bits), then
// parameters, mean, mean of squares (doubles), then the hash of everything before it.
constexpr char kMagic[8] = {'d', 'd', 'l', '-', 'f', 'i', 't', '1'};

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() { close(); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }
  int close() { return fd_ < 0 ? 0 : ::close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

[[noreturn]] void throw_errno(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

template <class T>
void append(std::string& bytes, const T* values, std::size_t count) {
  bytes.append(reinterpret_cast<const char*>(values), count * sizeof(T));
}

void append(std::string& bytes, const Eigen::VectorXd& values) {
  append(bytes, values.data(), static_cast<std::size_t>(values.size()));
}

/// Everything that has to be equal between the file and the running network, as it stands at the file's start.
std::string header_of(const Mlp& model) {
  std::string bytes(kMagic, sizeof kMagic);
  const std::uint64_t count = model.widths().size();
  append(bytes, &count, 1);
  for (const Eigen::Index width : model.widths()) {
    const auto value = static_cast<std::uint64_t>(width);
    append(bytes, &value, 1);
  }
  return bytes;
}

void write_all(const File& file, const std::string& bytes, const std::string& path) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::write(file.fd(), bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno != EINTR) throw_errno("writing " + path);
    if (n > 0) done += static_cast<std::size_t>(n);
  }
}

std::string read_all(const File& file, const std::string& path) {
  std::string bytes;
  char block[65536];
  for (;;) {
    const ssize_t n = ::read(file.fd(), block, sizeof block);
    if (n == 0) return bytes;
    if (n < 0 && errno != EINTR) throw_errno("reading " + path);
    if (n > 0) bytes.append(block, static_cast<std::size_t>(n));
  }
}

/// Makes the rename itself survive a power loss.
void sync_directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  File file(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems cannot sync a directory (EINVAL); there the rename is as durable as they make it.
  if (file.fd() < 0 || (::fsync(file.fd()) != 0 && errno != EINVAL)) throw_errno("syncing " + directory);
}

}  // namespace

void save_checkpoint(const std::string& path, const Mlp& model, const Adam& optimizer) {
  std::string bytes = header_of(model);
  append(bytes, &optimizer.steps, 1);
  append(bytes, model.parameters());
  append(bytes, optimizer.mean);
  append(bytes, optimizer.mean_squares);
  const std::uint64_t hash = fnv1a(bytes.data(), bytes.size());
  append(bytes, &hash, 1);

  const std::string temporary = path + ".tmp";
  try {
    File file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (file.fd() < 0) throw_errno("creating " + temporary);
    write_all(file, bytes, temporary);
    if (::fsync(file.fd()) != 0) throw_errno("syncing " + temporary);
    if (file.close() != 0) throw_errno("closing " + temporary);
    if (::rename(temporary.c_str(), path.c_str()) != 0) throw_errno("renaming " + temporary + " to " + path);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  sync_directory_of(path);
}

bool load_checkpoint(const std::string& path, Mlp& model, Adam& optimizer) {
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.fd() < 0) {
    if (errno == ENOENT) return false;
    throw_errno("opening " + path);
  }
  const std::string bytes = read_all(file, path);
  const std::string header = header_of(model);
  std::uint64_t hash = 0;
  if (bytes.size() < sizeof kMagic + sizeof hash || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0) {
    throw std::runtime_error(path + " is not a checkpoint of this program; remove it or name another file");
  }
  const std::size_t body = bytes.size() - sizeof hash;
  std::memcpy(&hash, bytes.data() + body, sizeof hash);
  if (hash != fnv1a(bytes.data(), body)) {
    throw std::runtime_error(path +
                             " is damaged: its contents do not match its hash; remove it to start again");
  }
  const auto vector_bytes = static_cast<std::size_t>(model.parameters().size()) * sizeof(double);
  if (bytes.compare(0, header.size(), header) != 0 ||
      body != header.size() + sizeof optimizer.steps + 3 * vector_bytes) {
    throw std::runtime_error(
        path + " holds a network of other layers; give the same --hidden as when it was written");
  }

  const char* from = bytes.data() + header.size();
  const auto take = [&from](void* to, std::size_t size) {
    std::memcpy(to, from, size);
    from += size;
  };
  take(&optimizer.steps, sizeof optimizer.steps);
  take(model.parameters().data(), vector_bytes);
  take(optimizer.mean.data(), vector_bytes);
  take(optimizer.mean_squares.data(), vector_bytes);
  return true;
}

}  // namespace fit
