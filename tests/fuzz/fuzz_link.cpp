// What ranks of other hosts say outside of collectives, on arbitrary bytes. The first byte chooses: a control frame, an
// introduction, or a business card. What is accepted must be readable without leaving its fields.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "runtime/src/link/control_frame.h"
#include "runtime/src/transport/tcp/business_card.h"
#include "runtime/src/transport/tcp/link_hello.h"

using namespace ddl::runtime;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data + 1, size - 1));
  if (data[0] % 3 == 0) {
    const auto frame = ControlFrame::parse(bytes);
    if (!frame) return 0;
    Call call;
    call.kind = CallKind::kBarrier;
    const Failure failure = frame->notice.describe(call, true);
    if (frame->kind == ControlFrame::Kind::kAbort && failure.status == DDL_OK) std::abort();
    if (failure.message.size() > 1000) std::abort();
  } else if (data[0] % 3 == 1) {
    ddl::net::Introduction introduction{};
    std::memcpy(introduction.data(), bytes.data(), std::min(bytes.size(), introduction.size()));
    const auto hello = LinkHello::parse(introduction);
    if (hello && hello->member().host.size() > 64) std::abort();
  } else {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const auto card = BusinessCard::parse(text);
    if (!card || card->addresses.empty()) return 0;
    const auto again = BusinessCard::parse(card->to_text());
    if (!again || again->to_text() != card->to_text()) std::abort();
  }
  return 0;
}
