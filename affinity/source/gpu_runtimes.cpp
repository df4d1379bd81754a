#include <array>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "affinity/source/vendor_gpus.h"
#include "base/bytes.h"
#include "base/shared_library.h"

namespace ddl::affinity {
namespace {

using Return = int;
constexpr std::size_t kUuidBytes = 16;
using UuidBytes = std::array<unsigned char, kUuidBytes>;
using BusIdText = std::array<char, 64>;

/// CUDA_ERROR_NO_DEVICE and hipErrorNoDevice: the variables hide all GPUs, or there is none.
constexpr Return kNoDevice = 100;

tl::unexpected<Error> failure(const char* call, Return code, const char* name) {
  return fail(ErrorCode::kUnavailable, fmt::format("{} fails with {}{}", call, code,
                                                   name == nullptr ? "" : fmt::format(" ({})", name)));
}

class Cuda {
 public:
  explicit Cuda(const SharedLibrary& library)
      : init_(library.function<Return(unsigned)>("cuInit")),
        count_(library.function<Return(int*)>("cuDeviceGetCount")),
        device_(library.function<Return(int*, int)>("cuDeviceGet")),
        bus_id_(library.function<Return(char*, int, int)>("cuDeviceGetPCIBusId")),
        uuid_(library.function<Return(unsigned char*, int)>("cuDeviceGetUuid")),
        instance_uuid_(library.function<Return(unsigned char*, int)>("cuDeviceGetUuid_v2")),
        error_name_(library.function<Return(Return, const char**)>("cuGetErrorName")) {}

  bool is_whole() const { return init_ && count_ && device_ && bus_id_ && (uuid_ || instance_uuid_); }

  Result<std::vector<VendorGpu>> gpus() const {
    const Return result = init_(0);
    if (result == kNoDevice) return std::vector<VendorGpu>();
    if (result != 0) return failure("cuInit", result, name_of(result));
    int count = 0;
    if (const Return code = count_(&count)) return failure("cuDeviceGetCount", code, name_of(code));
    std::vector<VendorGpu> gpus;
    for (int index = 0; index < count; ++index) {
      int device = 0;
      BusIdText bus_id{};
      if (const Return code = device_(&device, index)) return failure("cuDeviceGet", code, name_of(code));
      if (const Return code = bus_id_(bus_id.data(), bus_id.size() - 1, device))
        return failure("cuDeviceGetPCIBusId", code, name_of(code));
      gpus.push_back({index, canonical_bus_id(bus_id.data()), uuid_of(device), ""});
    }
    return gpus;
  }

 private:
  const char* name_of(Return code) const {
    const char* name = nullptr;
    if (error_name_ != nullptr) (void)error_name_(code, &name);
    return name;
  }
  static std::optional<UuidBytes> bytes_by(Return (*ask)(unsigned char*, int), int device) {
    UuidBytes bytes{};
    return ask != nullptr && ask(bytes.data(), device) == 0 ? std::optional(bytes) : std::nullopt;
  }
  /// Of an instance of a divided GPU (MIG) the younger function knows the instance, and the older one the GPU.
  std::string uuid_of(int device) const {
    const auto whole = bytes_by(uuid_, device), instance = bytes_by(instance_uuid_, device);
    if (!whole && !instance) return "";
    const bool is_instance = whole && instance && *whole != *instance;
    return (is_instance ? "MIG-" : "GPU-") +
           uuid_text(std::as_bytes(std::span(instance ? *instance : *whole)));
  }

  Return (*init_)(unsigned);
  Return (*count_)(int*);
  Return (*device_)(int*, int);
  Return (*bus_id_)(char*, int, int);
  Return (*uuid_)(unsigned char*, int);
  Return (*instance_uuid_)(unsigned char*, int);
  Return (*error_name_)(Return, const char**);
};

class Hip {
 public:
  explicit Hip(const SharedLibrary& library)
      : init_(library.function<Return(unsigned)>("hipInit")),
        count_(library.function<Return(int*)>("hipGetDeviceCount")),
        device_(library.function<Return(int*, int)>("hipDeviceGet")),
        bus_id_(library.function<Return(char*, int, int)>("hipDeviceGetPCIBusId")),
        uuid_(library.function<Return(char*, int)>("hipDeviceGetUuid")),
        error_name_(library.function<const char*(Return)>("hipGetErrorName")) {}

  bool is_whole() const { return init_ && count_ && device_ && bus_id_ && error_name_; }

  Result<std::vector<VendorGpu>> gpus() const {
    const char* call = "hipInit";
    Return result = init_(0);
    int count = 0;
    if (result == 0) {
      call = "hipGetDeviceCount";
      result = count_(&count);
    }
    if (result == kNoDevice) return std::vector<VendorGpu>();
    if (result != 0) return failure(call, result, error_name_(result));
    std::vector<VendorGpu> gpus;
    for (int index = 0; index < count; ++index) {
      BusIdText bus_id{};
      if (const Return code = bus_id_(bus_id.data(), bus_id.size() - 1, index))
        return failure("hipDeviceGetPCIBusId", code, error_name_(code));
      gpus.push_back({index, canonical_bus_id(bus_id.data()), uuid_of(index), ""});
    }
    return gpus;
  }

 private:
  /// 16 hexadecimal digits, as ROCm's tools print them; older GPUs have none.
  std::string uuid_of(int index) const {
    int device = 0;
    std::array<char, kUuidBytes + 1> digits{};
    if (uuid_ == nullptr || device_(&device, index) != 0 || uuid_(digits.data(), device) != 0) return "";
    const std::string text(digits.data());
    return text.find_first_not_of('0') == std::string::npos ? "" : "GPU-" + text;
  }

  Return (*init_)(unsigned);
  Return (*count_)(int*);
  Return (*device_)(int*, int);
  Return (*bus_id_)(char*, int, int);
  Return (*uuid_)(char*, int);
  const char* (*error_name_)(Return);
};

template <class Runtime>
Result<std::vector<VendorGpu>> ask(const SharedLibrary& library, const char* name) {
  const Runtime runtime(library);
  if (!runtime.is_whole())
    return fail(ErrorCode::kUnavailable, fmt::format("{} lacks a function of {}", library.path(), name));
  return runtime.gpus();
}

}  // namespace

Result<std::vector<VendorGpu>> ask_cuda(const std::string& name) {
  const auto library = SharedLibrary::load(name);
  if (!library) return fail(ErrorCode::kNotFound, library.error().message());
  return ask<Cuda>(*library, "CUDA");
}

Result<std::vector<VendorGpu>> ask_hip(std::initializer_list<const char*> names) {
  std::string reason;
  for (const char* name : names) {
    const auto library = SharedLibrary::load(name);
    if (library) return ask<Hip>(*library, "HIP");
    if (reason.empty()) reason = library.error().message();
  }
  return fail(ErrorCode::kNotFound, reason);
}

}  // namespace ddl::affinity
