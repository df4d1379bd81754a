// Libraries that are loaded with dlopen(3), and where the code of linked ones is.
#pragma once

#include <string>

#include "base/error.h"

namespace ddl {

/// A loaded library. It stays loaded until the process ends: what its constructors registered may be called until
/// then.
class SharedLibrary {
 public:
  /// name: a path, or a file name for the loader's search. The error is the loader's sentence.
  static Result<SharedLibrary> load(const std::string& name);

  /// The function of this name, or null.
  template <class Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(symbol(name));
  }
  /// The path that the loader found it at.
  const std::string& path() const { return path_; }

 private:
  SharedLibrary(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  void* symbol(const char* name) const;
  void* handle_;
  std::string path_;
};

/// Whether an address lies in the file (executable or library) that this function is in.
bool is_in_this_program(const void* address);

/// The file that holds the code at this address: the path of a library, or of this program if the code is a part of
/// it. "" if the address is in no file.
std::string file_of_code(const void* address);

}  // namespace ddl
