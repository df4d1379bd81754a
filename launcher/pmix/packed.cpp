#include "launcher/pmix/packed.h"

#include <pmix.h>
#include <pmix_deprecated.h>

#include <cstdlib>
#include <cstring>

namespace ddl::launcher {
namespace {

constexpr std::int32_t kMostInfos = 4096;

Status check_packing(const char* call, pmix_status_t status) {
  if (status == PMIX_SUCCESS) return {};
  return fail(ErrorCode::kProtocol, std::string(call) + ": " + PMIx_Error_string(status));
}

/// The library's buffer, which owns its bytes.
class Buffer {
 public:
  Buffer() { PMIX_DATA_BUFFER_CONSTRUCT(&buffer_); }
  explicit Buffer(const std::string& bytes) : Buffer() {
    pmix_byte_object_t object{};
    object.bytes = static_cast<char*>(std::malloc(bytes.size() + 1));  // the library frees it
    object.size = bytes.size();
    std::memcpy(object.bytes, bytes.data(), bytes.size());
    PMIx_Data_load(&buffer_, &object);
  }
  ~Buffer() { PMIX_DATA_BUFFER_DESTRUCT(&buffer_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  Status pack(const void* source, std::int32_t count, pmix_data_type_t type) {
    return check_packing("PMIx_Data_pack",
                         PMIx_Data_pack(nullptr, &buffer_, const_cast<void*>(source), count, type));
  }
  Status unpack(void* target, std::int32_t count, pmix_data_type_t type) {
    std::int32_t got = count;
    DDL_TRY(check_packing("PMIx_Data_unpack", PMIx_Data_unpack(nullptr, &buffer_, target, &got, type)));
    if (got != count) return fail(ErrorCode::kProtocol, "PMIx_Data_unpack: too few items");
    return {};
  }
  std::string bytes() const { return std::string(buffer_.base_ptr, buffer_.bytes_used); }

 private:
  pmix_data_buffer_t buffer_{};
};

}  // namespace

Result<std::string> pack_value(const pmix_value_t& value) {
  Buffer buffer;
  DDL_TRY(buffer.pack(&value, 1, PMIX_VALUE));
  return buffer.bytes();
}

Result<pmix_value_t> unpack_value(const std::string& bytes) {
  Buffer buffer(bytes);
  pmix_value_t value;
  PMIX_VALUE_CONSTRUCT(&value);
  DDL_TRY(buffer.unpack(&value, 1, PMIX_VALUE));
  return value;
}

Result<std::string> pack_infos(const pmix_info_t* infos, std::size_t count) {
  Buffer buffer;
  const auto number = static_cast<std::int32_t>(count);
  DDL_TRY(buffer.pack(&number, 1, PMIX_INT32));
  if (count > 0) DDL_TRY(buffer.pack(infos, number, PMIX_INFO));
  return buffer.bytes();
}

Result<std::vector<pmix_info_t>> unpack_infos(const std::string& bytes) {
  Buffer buffer(bytes);
  std::int32_t count = 0;
  DDL_TRY(buffer.unpack(&count, 1, PMIX_INT32));
  if (count < 0 || count > kMostInfos) return fail(ErrorCode::kProtocol, "an event with too many pairs");
  std::vector<pmix_info_t> infos(static_cast<std::size_t>(count));
  for (auto& info : infos) PMIX_INFO_CONSTRUCT(&info);
  if (count > 0) DDL_TRY(buffer.unpack(infos.data(), count, PMIX_INFO));
  return infos;
}

}  // namespace ddl::launcher
