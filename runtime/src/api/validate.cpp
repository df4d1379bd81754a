#include "runtime/src/api/validate.h"

#include <cstddef>
#include <string>

#include "runtime/src/collective/element.h"

namespace ddl::runtime {
namespace {

tl::unexpected<Failure> invalid(std::string message) {
  return failed(DDL_ERROR_INVALID_ARGUMENT, std::move(message));
}

std::uintptr_t address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

Outcome check_pointer(const char* name, const void* pointer, const Buffers& buffers) {
  if (buffers.count == 0) return {};
  if (pointer == nullptr) return invalid(std::string(name) + " is null");
  if (address(pointer) % element_size(buffers.dtype) != 0) {
    return invalid(std::string(name) + " is not aligned for " + dtype_name(buffers.dtype));
  }
  return {};
}

/// The type exists, and parts * count elements of it fit into an address space.
Outcome check_extent(const Buffers& buffers, std::uint64_t parts) {
  const std::size_t size = element_size(buffers.dtype);
  if (size == 0) return invalid("dtype " + std::to_string(buffers.dtype) + " does not exist");
  if (buffers.count > static_cast<std::uint64_t>(PTRDIFF_MAX) / size / parts) {
    return invalid("count " + std::to_string(buffers.count) + " does not fit into memory");
  }
  return {};
}

bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) {
  return a_bytes != 0 && b_bytes != 0 && address(a) < address(b) + b_bytes &&
         address(b) < address(a) + a_bytes;
}

}  // namespace

Outcome check_allreduce(const Buffers& buffers, ddl_op op) {
  if (auto extent = check_extent(buffers, 1); !extent) return extent;
  if (op_name_or_null(op) == nullptr) return invalid("op " + std::to_string(op) + " does not exist");
  if (!op_applies(op, buffers.dtype))
    return invalid(std::string("there is no ") + op_name(op) + " of " + dtype_name(buffers.dtype));
  if (auto send = check_pointer("send", buffers.send, buffers); !send) return send;
  if (auto recv = check_pointer("recv", buffers.recv, buffers); !recv) return recv;
  const std::size_t bytes = buffers.count * element_size(buffers.dtype);
  if (buffers.send != buffers.recv && overlap(buffers.send, bytes, buffers.recv, bytes)) {
    return invalid("send and recv overlap; they must be the same or apart");
  }
  return {};
}

Outcome check_broadcast(const Buffers& buffers, int root, int size) {
  if (auto extent = check_extent(buffers, 1); !extent) return extent;
  if (root < 0 || root >= size) {
    return invalid("root " + std::to_string(root) + " is not a rank of 0 to " + std::to_string(size - 1));
  }
  return check_pointer("buffer", buffers.recv, buffers);
}

Outcome check_allgather(const Buffers& buffers, int rank, int size) {
  if (auto extent = check_extent(buffers, static_cast<std::uint64_t>(size)); !extent) return extent;
  if (auto send = check_pointer("send", buffers.send, buffers); !send) return send;
  if (auto recv = check_pointer("recv", buffers.recv, buffers); !recv) return recv;
  const std::size_t part = buffers.count * element_size(buffers.dtype);
  const auto* own_part = static_cast<const std::byte*>(buffers.recv) + static_cast<std::size_t>(rank) * part;
  if (buffers.send != own_part &&
      overlap(buffers.send, part, buffers.recv, part * static_cast<std::size_t>(size))) {
    return invalid("send and recv overlap; send must be this rank's part of recv or apart from it");
  }
  return {};
}

}  // namespace ddl::runtime
