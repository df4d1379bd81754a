#include "base/mapped_memory.h"

#include <sys/mman.h>

namespace ddl {

MappedMemory::~MappedMemory() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

Result<MappedMemory> MappedMemory::map_shared(int fd, std::size_t size) {
  void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) return fail_errno("mmap of " + std::to_string(size) + " bytes");
  return MappedMemory(static_cast<std::byte*>(data), size);
}

}  // namespace ddl
