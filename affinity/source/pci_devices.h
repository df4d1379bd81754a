// What is known of PCI devices beyond hwloc: which ones are GPUs or network adapters, and, on boards whose firmware
// does not say it, which L3 cache each GPU is nearest to.
#pragma once

#include <cstdint>
#include <optional>

#include "affinity/topology.h"

namespace ddl::affinity {

// What a PCI device is, by vendor and class.

/// As in the device's configuration space.
struct PciIdentity {
  std::uint16_t vendor = 0;
  std::uint16_t device = 0;
  std::uint16_t device_class = 0;  ///< base class and subclass: 0x0302
};

/// The vendor of a GPU that computes; nullopt for a GPU that only draws on a console (a BMC's VGA), for accelerators
/// of another kind (FPGAs), and for everything else.
constexpr std::optional<GpuVendor> gpu_vendor_of(const PciIdentity& pci) {
  constexpr std::uint16_t kVga = 0x0300, k3d = 0x0302, kOtherDisplay = 0x0380, kProcessing = 0x1200;
  const bool is_display =
      pci.device_class == kVga || pci.device_class == k3d || pci.device_class == kOtherDisplay;
  switch (pci.vendor) {
    case 0x10de: return is_display ? std::optional(GpuVendor::kNvidia) : std::nullopt;
    case 0x1002:
      return is_display || pci.device_class == kProcessing ? std::optional(GpuVendor::kAmd) : std::nullopt;
    case 0x8086: return pci.device_class == kOtherDisplay ? std::optional(GpuVendor::kIntel) : std::nullopt;
    default: return std::nullopt;
  }
}

/// InfiniBand, and fabrics that are not Ethernet. RoCE and Slingshot are Ethernet to PCI.
constexpr bool is_fabric(const PciIdentity& pci) {
  return pci.device_class == 0x0207 || pci.device_class == 0x0208;
}

/// Ethernet, InfiniBand, and fabrics.
constexpr bool is_nic(const PciIdentity& pci) { return pci.device_class == 0x0200 || is_fabric(pci); }

// Which cores a device is nearest to, on boards whose firmware does not report it.

/// Narrows the places of GPUs on a board that is in the table, by bus id: from a NUMA node to the one L3 in it that
/// the GPU is wired to. Does not change a place that is as narrow already, or one that contradicts the table. Pure.
void apply_board_quirks(Topology& topology);

}  // namespace ddl::affinity
