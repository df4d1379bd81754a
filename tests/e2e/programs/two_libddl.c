/* two_libddl FILE: loads a second libddl from FILE, and calls ddl_init() of the first and of the second one. Prints
 * "first: STATUS: ERROR" and "second: STATUS: ERROR"; exits with 1 if both fail, with 0 if one succeeds. */
#include <ddl/ddl.h>
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  void* const second = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (second == NULL) {
    printf("dlopen: %s\n", argc == 2 ? dlerror() : "no file");
    return 2;
  }
  ddl_status (*init)(const ddl_init_options*, ddl_context**);
  const char* (*last_error)(void);
  *(void**)&init = dlsym(second, "ddl_init");
  *(void**)&last_error = dlsym(second, "ddl_last_error");
  ddl_context* context = NULL;
  const ddl_status of_first = ddl_init(NULL, &context);
  printf("first: %s: %s\n", ddl_status_name(of_first), ddl_last_error());
  const ddl_status of_second = init(NULL, &context);
  printf("second: %s: %s\n", ddl_status_name(of_second), last_error());
  return of_first != DDL_OK && of_second != DDL_OK;
}
