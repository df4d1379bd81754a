// PMIx values as bytes that every node's PMIx library can read back. Included only by launcher/pmix/*.cpp.
#pragma once

#include <pmix_server.h>

#include <string>
#include <vector>

#include "base/error.h"

namespace ddl::launcher {

/// All of these only while the library's server runs. The pairs' keys travel with them; a value is one pair's.
Result<std::string> pack_value(const pmix_value_t& value);
/// The caller destructs the value. Error: bytes that the library does not understand.
Result<pmix_value_t> unpack_value(const std::string& bytes);
Result<std::string> pack_infos(const pmix_info_t* infos, std::size_t count);
/// The caller destructs each.
Result<std::vector<pmix_info_t>> unpack_infos(const std::string& bytes);

}  // namespace ddl::launcher
