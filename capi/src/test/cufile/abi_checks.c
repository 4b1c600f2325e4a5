// What the library exports, its version, and the names of its codes.
#include "suite.h"

#include <dlfcn.h>
#include <link.h>

static void symbols(void) {
  void *library = dlopen(cufile_library, RTLD_NOW | RTLD_LOCAL);
  is_true("loads", library != NULL, "dlopen opens the library", library == NULL ? dlerror() : "dlopen opens the library");
  if (library == NULL) {
    give_up("the library was not loaded");
  }
#define X(name) is_true(text("exports-%s", exported_name(#name)), dlsym(library, exported_name(#name)) != NULL, "exported", \
                        dlsym(library, exported_name(#name)) == NULL ? "missing" : "exported");
  CUFILE_FUNCTIONS(X)
#undef X
  bool first_close = dlsym(library, "cuFileDriverClose") != NULL; // programs of before 1.3
  is_true("exports-cuFileDriverClose", first_close, "exported", first_close ? "exported" : "missing");
  struct link_map *map = NULL;
  dlinfo(library, RTLD_DI_LINKMAP, &map);
  const char *soname = "none";
  const char *strings = NULL;
  for (ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
    strings = d->d_tag == DT_STRTAB ? (const char *)d->d_un.d_ptr : strings;
  }
  for (ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
    soname = d->d_tag == DT_SONAME ? strings + d->d_un.d_val : soname;
  }
  is_true("soname", strcmp(soname, "libcufile.so.0") == 0, "libcufile.so.0", soname);
}

static void version(void) {
  int value = -1;
  SUCCEEDS("before-open", cufile.GetVersion(&value));
  is_true("form", value >= 1000 && value % 10 == 0, "1000 major + 10 minor", text("%d", value));
  is_number("is-1.15", value, 1150);
  is_error("null", cufile.GetVersion(NULL), CU_FILE_INVALID_VALUE);
  is_number("driver-stays-closed", cufile.UseCount(), 0);
}

static void sizes(void) {
#define SIZE(type, expected) is_number(#type, sizeof(type), expected)
  SIZE(CUfileError_t, 8);
  SIZE(CUfileDrvProps_t, 56);
  SIZE(CUfileFSOps_t, 40);
  SIZE(CUfileDescr_t, 24);
  SIZE(CUfileIOParams_t, 64);
  SIZE(CUfileIOEvents_t, 24);
  SIZE(CUfileOpCounter_t, 16);
  SIZE(CUfileStatsLevel1_t, 512);
  SIZE(CUfileStatsLevel2_t, 1024);
  SIZE(CUfilePerGpuStats_t, 248);
  SIZE(CUfileStatsLevel3_t, 5000);
#undef SIZE
}

static void op_names(void) {
#ifdef CUFILE_ERRSTR
  is_true("success", strcmp(CUFILE_ERRSTR(0), "cufile success") == 0, "cufile success", CUFILE_ERRSTR(0));
  is_true("negative-is-the-same", strcmp(CUFILE_ERRSTR(-5022), CUFILE_ERRSTR(5022)) == 0, CUFILE_ERRSTR(5022), CUFILE_ERRSTR(-5022));
  is_true("unknown", strcmp(CUFILE_ERRSTR(5099), "unknown cufile error") == 0, "unknown cufile error", CUFILE_ERRSTR(5099));
  is_true("errno-is-none", !IS_CUFILE_ERR(EIO) && IS_CUFILE_ERR(-5022), "IS_CUFILE_ERR for 5001 and more",
          text("%d and %d", IS_CUFILE_ERR(EIO), IS_CUFILE_ERR(-5022)));
  for (int code = 5001; code <= 5050; code++) {
    if (strcmp(code_name(code), text("%d", code)) != 0) {
      bool named = strcmp(CUFILE_ERRSTR(code), "unknown cufile error") != 0;
      is_true(text("has-text-%d", code), named, "a text of its own", CUFILE_ERRSTR(code));
    }
  }
#else
  skip("all", "the header declares no CUFILE_ERRSTR");
#endif
}

static void bar_size(void) {
  size_t size = 0;
  observe("closed", error_text(cufile.GetBARSizeInKB(0, &size)));
  open_driver();
  is_error("null", cufile.GetBARSizeInKB(0, NULL), CU_FILE_INVALID_VALUE);
  is_error("negative-index", cufile.GetBARSizeInKB(-1, &size), CU_FILE_INVALID_VALUE);
  is_error("no-such-gpu", cufile.GetBARSizeInKB(1000, &size), CU_FILE_INVALID_VALUE);
  if (cuda_missing != NULL) {
    skip("gpu-0", cuda_missing);
    return;
  }
  CUfileError_t error = cufile.GetBARSizeInKB(0, &size);
  observe("gpu-0", text("%s, %s", error_text(error), size == 0 ? "0" : "more than 0"));
}

const struct group abi_groups[] = {
    {"symbols", "each function is exported; the soname", symbols, UNLOADED, NULL},
    {"version", "cuFileGetVersion", version, 0, NULL},
    {"sizes", "sizes of the structures of the header that the suite was compiled with", sizes, UNLOADED, NULL},
    {"names", "CUFILE_ERRSTR and IS_CUFILE_ERR", op_names, UNLOADED, NULL},
    {"bar", "cuFileGetBARSizeInKB", bar_size, 0, NULL},
    {0},
};
