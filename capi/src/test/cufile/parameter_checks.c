// The getters and setters of parameters, and what takes precedence.
#include "suite.h"

struct named {
  int param;
  const char *name;
};

#define NAMED(name) {CUFILE_PARAM_##name, #name}
static const struct named sizes[] = {
    NAMED(PROFILE_STATS),
    NAMED(EXECUTION_MAX_IO_QUEUE_DEPTH),
    NAMED(EXECUTION_MAX_IO_THREADS),
    NAMED(EXECUTION_MIN_IO_THRESHOLD_SIZE_KB),
    NAMED(EXECUTION_MAX_REQUEST_PARALLELISM),
    NAMED(PROPERTIES_MAX_DIRECT_IO_SIZE_KB),
    NAMED(PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB),
    NAMED(PROPERTIES_PER_BUFFER_CACHE_SIZE_KB),
    NAMED(PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB),
    NAMED(PROPERTIES_IO_BATCHSIZE),
    NAMED(POLLTHRESHOLD_SIZE_KB),
    NAMED(PROPERTIES_BATCH_IO_TIMEOUT_MS),
};
static const struct named bools[] = {
    NAMED(PROPERTIES_USE_POLL_MODE),
    NAMED(PROPERTIES_ALLOW_COMPAT_MODE),
    NAMED(FORCE_COMPAT_MODE),
    NAMED(FS_MISC_API_CHECK_AGGRESSIVE),
    NAMED(EXECUTION_PARALLEL_IO),
    NAMED(PROFILE_NVTX),
    NAMED(PROPERTIES_ALLOW_SYSTEM_MEMORY),
    NAMED(USE_PCIP2PDMA),
    NAMED(PREFER_IO_URING),
    NAMED(FORCE_ODIRECT_MODE),
    NAMED(SKIP_TOPOLOGY_DETECTION),
    NAMED(STREAM_MEMOPS_BYPASS),
};
static const struct named strings[] = {
    NAMED(LOGGING_LEVEL),
    NAMED(ENV_LOGFILE_PATH),
    NAMED(LOG_DIR),
};
#undef NAMED
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static void size_defaults(void) {
  for (size_t i = 0; i < COUNT(sizes); i++) {
    size_t value = (size_t)-1;
    SUCCEEDS(text("%s", sizes[i].name), cufile.GetParameterSizeT(sizes[i].param, &value));
    observe(text("%s-value", sizes[i].name), text("%zu", value));
  }
  size_t value;
  is_error("null", cufile.GetParameterSizeT(CUFILE_PARAM_PROFILE_STATS, NULL), CU_FILE_INVALID_VALUE);
  is_error("unknown", cufile.GetParameterSizeT((CUFileSizeTConfigParameter_t)99, &value), CU_FILE_INVALID_VALUE);
  observe("negative", error_text(cufile.GetParameterSizeT((CUFileSizeTConfigParameter_t)-1, &value)));
  is_number("driver-stays-closed", cufile.UseCount(), 0);
}

// What a library leaves unwritten shows.
enum { UNWRITTEN = 77777 };

static void size_limits(void) {
  size_t low, high;
  for (size_t i = 0; i < COUNT(sizes); i++) {
    low = high = UNWRITTEN;
    CUfileError_t error = cufile.GetParameterMinMaxValue(sizes[i].param, &low, &high);
    if (sizes[i].param == CUFILE_PARAM_PROFILE_STATS) {
      observe("PROFILE_STATS", error_text(error));
      continue;
    }
    SUCCEEDS(text("%s", sizes[i].name), error);
    observe(text("%s-use-count", sizes[i].name), text("%ld", cufile.UseCount()));
    observe(text("%s-limits", sizes[i].name), text("%s, %s", low == UNWRITTEN ? "unwritten" : text("%zu", low), high == UNWRITTEN ? "unwritten" : text("%zu", high)));
  }
  is_error("null-min", cufile.GetParameterMinMaxValue(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, NULL, &high), CU_FILE_INVALID_VALUE);
  is_error("null-max", cufile.GetParameterMinMaxValue(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, &low, NULL), CU_FILE_INVALID_VALUE);
  is_error("unknown", cufile.GetParameterMinMaxValue((CUFileSizeTConfigParameter_t)99, &low, &high), CU_FILE_INVALID_VALUE);
}

static void size_limits_open(void) {
  open_driver();
  size_limits();
}

// A call for limits may open the driver, so what is set is known beforehand.
static void size_set(void) {
  static const size_t values[] = {[CUFILE_PARAM_PROFILE_STATS] = 1,
                                  [CUFILE_PARAM_EXECUTION_MAX_IO_QUEUE_DEPTH] = 64,
                                  [CUFILE_PARAM_EXECUTION_MAX_IO_THREADS] = 2,
                                  [CUFILE_PARAM_EXECUTION_MIN_IO_THRESHOLD_SIZE_KB] = 4096,
                                  [CUFILE_PARAM_EXECUTION_MAX_REQUEST_PARALLELISM] = 2,
                                  [CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB] = 1024,
                                  [CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB] = 65536,
                                  [CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB] = 2048,
                                  [CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB] = 1 << 20,
                                  [CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE] = 32,
                                  [CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB] = 64,
                                  [CUFILE_PARAM_PROPERTIES_BATCH_IO_TIMEOUT_MS] = 500};
  for (size_t i = 0; i < COUNT(sizes); i++) {
    const char *name = sizes[i].name;
    size_t expected = values[sizes[i].param], is = 0;
    SUCCEEDS(text("%s", name), cufile.SetParameterSizeT(sizes[i].param, expected));
    SUCCEEDS(text("%s-get", name), cufile.GetParameterSizeT(sizes[i].param, &is));
    is_number(text("%s-got", name), (long long)is, (long long)expected);
    SUCCEEDS(text("%s-again", name), cufile.SetParameterSizeT(sizes[i].param, 2 * expected));
    cufile.GetParameterSizeT(sizes[i].param, &is);
    is_number(text("%s-last-wins", name), (long long)is, (long long)(2 * expected));
  }
  is_error("unknown", cufile.SetParameterSizeT((CUFileSizeTConfigParameter_t)99, 1), CU_FILE_INVALID_VALUE);
  is_number("driver-stays-closed", cufile.UseCount(), 0);
}

static void size_beyond(void) {
  for (size_t i = 0; i < COUNT(sizes); i++) {
    size_t low = UNWRITTEN, high = UNWRITTEN;
    cufile.GetParameterMinMaxValue(sizes[i].param, &low, &high);
    if (high != UNWRITTEN) {
      observe(text("%s-above-max", sizes[i].name), error_text(cufile.SetParameterSizeT(sizes[i].param, high + 1)));
    }
    if (low != UNWRITTEN && low > 0) {
      observe(text("%s-below-min", sizes[i].name), error_text(cufile.SetParameterSizeT(sizes[i].param, low - 1)));
    }
  }
}

// Values that no driver takes: the setter or the opening may say so.
static void out_of_range(CUFileSizeTConfigParameter_t param, size_t value) {
  observe("set", error_text(cufile.SetParameterSizeT(param, value)));
  CUfileError_t error = cufile.DriverOpen();
  observe("open", error_text(error));
  size_t is = 0;
  error = cufile.GetParameterSizeT(param, &is);
  observe("get", text("%s, %zu", error_text(error), is));
}

static void batch_size_too_large(void) { out_of_range(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, 1000000); }
static void direct_io_odd(void) { out_of_range(CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB, 100); }
static void poll_odd(void) { out_of_range(CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB, 5); }
static void threads_too_many(void) { out_of_range(CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, 1000); }

static void bool_set(void) {
  bool is = false;
  for (size_t i = 0; i < COUNT(bools); i++) {
    const char *name = bools[i].name;
    SUCCEEDS(text("%s", name), cufile.GetParameterBool(bools[i].param, &is));
    observe(text("%s-value", name), is ? "true" : "false");
    bool other = !is;
    SUCCEEDS(text("%s-set", name), cufile.SetParameterBool(bools[i].param, other));
    cufile.GetParameterBool(bools[i].param, &is);
    is_number(text("%s-got", name), is, other);
  }
  is_error("null", cufile.GetParameterBool(CUFILE_PARAM_FORCE_COMPAT_MODE, NULL), CU_FILE_INVALID_VALUE);
  is_error("unknown-get", cufile.GetParameterBool((CUFileBoolConfigParameter_t)99, &is), CU_FILE_INVALID_VALUE);
  is_error("unknown-set", cufile.SetParameterBool((CUFileBoolConfigParameter_t)99, true), CU_FILE_INVALID_VALUE);
}

static void string_set(void) {
  char is[512];
  for (size_t i = 0; i < COUNT(strings); i++) {
    memset(is, 0, sizeof is);
    observe(text("%s", strings[i].name), error_text(cufile.GetParameterString(strings[i].param, is, sizeof is)));
  }
  SUCCEEDS("level-set", cufile.SetParameterString(CUFILE_PARAM_LOGGING_LEVEL, "INFO"));
  SUCCEEDS("level-get", cufile.GetParameterString(CUFILE_PARAM_LOGGING_LEVEL, is, sizeof is));
  is_true("level-got", strcmp(is, "INFO") == 0, "INFO", is);
  static const char *const levels[] = {"ERROR", "WARN", "DEBUG", "TRACE", "NOTICE"};
  for (size_t i = 0; i < COUNT(levels); i++) {
    SUCCEEDS(text("level-%s", levels[i]), cufile.SetParameterString(CUFILE_PARAM_LOGGING_LEVEL, levels[i]));
  }
  observe("level-lower-case", error_text(cufile.SetParameterString(CUFILE_PARAM_LOGGING_LEVEL, "info")));
  observe("level-unknown", error_text(cufile.SetParameterString(CUFILE_PARAM_LOGGING_LEVEL, "LOUD")));
  char folder[1024];
  if (getcwd(folder, sizeof folder) == NULL) {
    give_up("no working directory");
  }
  SUCCEEDS("dir-set", cufile.SetParameterString(CUFILE_PARAM_LOG_DIR, folder));
  char long_one[1024] = "";
  SUCCEEDS("dir-get", cufile.GetParameterString(CUFILE_PARAM_LOG_DIR, long_one, sizeof long_one));
  is_true("dir-got", strcmp(long_one, folder) == 0, "the folder that was set", strcmp(long_one, folder) == 0 ? "the folder that was set" : long_one);
  observe("dir-missing", error_text(cufile.SetParameterString(CUFILE_PARAM_LOG_DIR, "/nowhere/at/all")));
  SUCCEEDS("file-set", cufile.SetParameterString(CUFILE_PARAM_ENV_LOGFILE_PATH, text("%s/my.log", folder)));
  is_error("null-get", cufile.GetParameterString(CUFILE_PARAM_LOG_DIR, NULL, 10), CU_FILE_INVALID_VALUE);
  is_error("null-set", cufile.SetParameterString(CUFILE_PARAM_LOG_DIR, NULL), CU_FILE_INVALID_VALUE);
  observe("short", error_text(cufile.GetParameterString(CUFILE_PARAM_LOG_DIR, is, 2)));
  observe("no-room", error_text(cufile.GetParameterString(CUFILE_PARAM_LOG_DIR, is, 0)));
  observe("negative-room", error_text(cufile.GetParameterString(CUFILE_PARAM_LOG_DIR, is, -1)));
  is_error("unknown-get", cufile.GetParameterString((CUFileStringConfigParameter_t)99, is, sizeof is), CU_FILE_INVALID_VALUE);
  is_error("unknown-set", cufile.SetParameterString((CUFileStringConfigParameter_t)99, "x"), CU_FILE_INVALID_VALUE);
  observe("empty", error_text(cufile.SetParameterString(CUFILE_PARAM_LOG_DIR, "")));
}

static void set_while_open(void) {
  size_t value;
  bool flag;
  open_driver();
  for (size_t i = 0; i < COUNT(sizes); i++) {
    SUCCEEDS(text("%s-get", sizes[i].name), cufile.GetParameterSizeT(sizes[i].param, &value));
    is_error(text("%s", sizes[i].name), cufile.SetParameterSizeT(sizes[i].param, value), CU_FILE_DRIVER_ALREADY_OPEN);
  }
  for (size_t i = 0; i < COUNT(bools); i++) {
    SUCCEEDS(text("%s-get", bools[i].name), cufile.GetParameterBool(bools[i].param, &flag));
    is_error(text("%s", bools[i].name), cufile.SetParameterBool(bools[i].param, flag), CU_FILE_DRIVER_ALREADY_OPEN);
  }
  is_error("LOGGING_LEVEL", cufile.SetParameterString(CUFILE_PARAM_LOGGING_LEVEL, "INFO"), CU_FILE_DRIVER_ALREADY_OPEN);
  size_t slab_sizes[] = {4, 1024}, counts[] = {8, 8};
  is_error("slabs", cufile.SetParameterPosixPoolSlabArray(slab_sizes, counts, 2), CU_FILE_DRIVER_ALREADY_OPEN);
  SUCCEEDS("close", cufile.DriverClose());
  SUCCEEDS("set-after-close", cufile.SetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, 64));
}

// Each alone, then together: what was set is what the driver opens with.
static void applied(CUFileSizeTConfigParameter_t param, size_t value, unsigned of_properties(const CUfileDrvProps_t *)) {
  size_t is = 0;
  CUfileDrvProps_t p = {0};
  SUCCEEDS("set", cufile.SetParameterSizeT(param, value));
  open_driver();
  SUCCEEDS("get", cufile.GetParameterSizeT(param, &is));
  is_number("runtime-value", (long long)is, (long long)value);
  SUCCEEDS("properties", cufile.DriverGetProperties(&p));
  observe("property", text("%u", of_properties(&p)));
}

static unsigned batch_of(const CUfileDrvProps_t *p) { return p->max_batch_io_size; }
static unsigned direct_of(const CUfileDrvProps_t *p) { return (unsigned)p->nvfs.max_direct_io_size; }
static unsigned pinned_of(const CUfileDrvProps_t *p) { return p->max_device_pinned_mem_size; }
static unsigned cache_of(const CUfileDrvProps_t *p) { return p->max_device_cache_size; }
static void applied_batch(void) { applied(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, 64, batch_of); }
static void applied_direct(void) { applied(CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB, 1024, direct_of); }
static void applied_pinned(void) { applied(CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB, 1 << 20, pinned_of); }
static void applied_cache(void) { applied(CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB, 65536, cache_of); }

static void applied_poll(void) {
  SUCCEEDS("set", cufile.SetParameterBool(CUFILE_PARAM_PROPERTIES_USE_POLL_MODE, true));
  open_driver();
  bool is = false;
  SUCCEEDS("get", cufile.GetParameterBool(CUFILE_PARAM_PROPERTIES_USE_POLL_MODE, &is));
  is_number("runtime-value", is, 1);
}

static void applied_together(void) {
  SUCCEEDS("batch-size", cufile.SetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, 32));
  SUCCEEDS("batch-size-twice", cufile.SetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, 64));
  SUCCEEDS("direct-io", cufile.SetParameterSizeT(CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB, 1024));
  SUCCEEDS("pinned", cufile.SetParameterSizeT(CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB, 1 << 20));
  SUCCEEDS("poll", cufile.SetParameterBool(CUFILE_PARAM_PROPERTIES_USE_POLL_MODE, true));
  open_driver();
  size_t value = 0;
  SUCCEEDS("get", cufile.GetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, &value));
  is_number("batch-size-last-wins", (long long)value, 64);
  CUfileDrvProps_t p = {0};
  SUCCEEDS("properties", cufile.DriverGetProperties(&p));
  observe("properties-are", text("%zu, %u", p.nvfs.max_direct_io_size, p.max_device_pinned_mem_size));
  SUCCEEDS("close", cufile.DriverClose());
  cufile.GetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, &value);
  observe("value-after-close", text("%zu", value));
}

static void slabs(void) {
  size_t slab_sizes[8] = {0}, counts[8] = {0};
  CUfileError_t error = cufile.GetParameterPosixPoolSlabArray(slab_sizes, counts, 3);
  observe("default-3", text("%s: %zu %zu %zu, %zu %zu %zu", error_text(error), slab_sizes[0], slab_sizes[1], slab_sizes[2], counts[0], counts[1],
                            counts[2]));
  size_t new_sizes[] = {4, 64, 1024, 8192}, new_counts[] = {16, 8, 4, 2};
  SUCCEEDS("set", cufile.SetParameterPosixPoolSlabArray(new_sizes, new_counts, 4));
  SUCCEEDS("get", cufile.GetParameterPosixPoolSlabArray(slab_sizes, counts, 4));
  is_true("got-sizes", memcmp(slab_sizes, new_sizes, sizeof new_sizes) == 0, "4 64 1024 8192",
          text("%zu %zu %zu %zu", slab_sizes[0], slab_sizes[1], slab_sizes[2], slab_sizes[3]));
  is_true("got-counts", memcmp(counts, new_counts, sizeof new_counts) == 0, "16 8 4 2",
          text("%zu %zu %zu %zu", counts[0], counts[1], counts[2], counts[3]));
  is_error("get-fewer", cufile.GetParameterPosixPoolSlabArray(slab_sizes, counts, 3), CU_FILE_INVALID_VALUE);
  is_error("get-more", cufile.GetParameterPosixPoolSlabArray(slab_sizes, counts, 5), CU_FILE_INVALID_VALUE);
  is_error("get-null", cufile.GetParameterPosixPoolSlabArray(NULL, counts, 4), CU_FILE_INVALID_VALUE);
  is_error("get-null-counts", cufile.GetParameterPosixPoolSlabArray(slab_sizes, NULL, 4), CU_FILE_INVALID_VALUE);
  is_error("set-null", cufile.SetParameterPosixPoolSlabArray(NULL, counts, 4), CU_FILE_INVALID_VALUE);
  is_error("set-null-counts", cufile.SetParameterPosixPoolSlabArray(slab_sizes, NULL, 4), CU_FILE_INVALID_VALUE);
  is_error("set-none", cufile.SetParameterPosixPoolSlabArray(new_sizes, new_counts, 0), CU_FILE_INVALID_VALUE);
  is_error("set-negative", cufile.SetParameterPosixPoolSlabArray(new_sizes, new_counts, -1), CU_FILE_INVALID_VALUE);
  size_t odd[] = {3, 1024}, zero[] = {0, 4};
  observe("set-unaligned", error_text(cufile.SetParameterPosixPoolSlabArray(odd, new_counts, 2)));
  observe("set-zero-size", error_text(cufile.SetParameterPosixPoolSlabArray(zero, new_counts, 2)));
  observe("set-zero-count", error_text(cufile.SetParameterPosixPoolSlabArray(new_sizes, zero, 2)));
  SUCCEEDS("opens-with-them", cufile.DriverOpen());
}

// ---- Precedence: setter, environment, file

static void batch_in_json(void) { configure("\"io_batchsize\": 16", ""); }

static void env_says_yes(void) {
  configure_text("{\"properties\": {\"allow_compat_mode\": false}}");
  setenv("CUFILE_ALLOW_COMPAT_MODE", "true", 1);
}

static void from_json(void) {
  size_t size = 0;
  CUfileError_t error = cufile.GetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, &size);
  observe("before-open", text("%s, %zu", error_text(error), size));
  open_driver();
  SUCCEEDS("get", cufile.GetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, &size));
  is_number("batch-size", (long long)size, 16);
}

static void setter_over_json(void) {
  size_t size = 0;
  SUCCEEDS("set", cufile.SetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, 48));
  cufile.GetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, &size);
  is_number("staged", (long long)size, 48);
  open_driver();
  cufile.GetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, &size);
  is_number("batch-size", (long long)size, 48);
}

static void from_environment(void) {
  bool allowed = false;
  cufile.GetParameterBool(CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE, &allowed);
  observe("before-open", allowed ? "true" : "false");
  open_driver();
  SUCCEEDS("get", cufile.GetParameterBool(CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE, &allowed));
  is_number("environment-wins", allowed, 1);
}

static void env_says_no(void) {
  configure("", "");
  setenv("CUFILE_ALLOW_COMPAT_MODE", "false", 1);
}

static void setter_over_environment(void) {
  bool allowed = false;
  SUCCEEDS("set", cufile.SetParameterBool(CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE, true));
  open_driver();
  cufile.GetParameterBool(CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE, &allowed);
  is_number("setter-wins", allowed, 1);
}

static void level_in_environment(void) { setenv("CUFILE_LOGGING_LEVEL", "WARN", 1); }

static void level_from_environment(void) {
  char level[64] = "";
  observe("before-open", error_text(cufile.GetParameterString(CUFILE_PARAM_LOGGING_LEVEL, level, sizeof level)));
  open_driver();
  SUCCEEDS("get", cufile.GetParameterString(CUFILE_PARAM_LOGGING_LEVEL, level, sizeof level));
  is_true("value", strcmp(level, "WARN") == 0, "WARN", level);
}

static void force_in_environment(void) { setenv("CUFILE_FORCE_COMPAT_MODE", "true", 1); }

static void force_from_environment(void) {
  bool forced = false;
  open_driver();
  SUCCEEDS("get", cufile.GetParameterBool(CUFILE_PARAM_FORCE_COMPAT_MODE, &forced));
  is_number("value", forced, 1);
}

const struct group parameter_groups[] = {
    {"parameter.size", "cuFileGetParameterSizeT: each, and its default", size_defaults, 0, NULL},
    {"parameter.limits", "cuFileGetParameterMinMaxValue", size_limits, 0, NULL},
    {"parameter.limits-open", "the same while the driver is open", size_limits_open, 0, NULL},
    {"parameter.batch-size-range", "a value that is too large", batch_size_too_large, MAY_CRASH, NULL},
    {"parameter.direct-io-range", "a size that is no multiple of 64 KiB", direct_io_odd, MAY_CRASH, NULL},
    {"parameter.poll-range", "a size that is no multiple of 4 KiB", poll_odd, MAY_CRASH, NULL},
    {"parameter.threads-range", "too many threads", threads_too_many, MAY_CRASH, NULL},
    {"parameter.size-set", "cuFileSetParameterSizeT, read back", size_set, 0, NULL},
    {"parameter.size-beyond", "beyond the limits", size_beyond, 0, NULL},
    {"parameter.bool", "each flag, set and read back", bool_set, 0, NULL},
    {"parameter.string", "each text, set and read back", string_set, 0, NULL},
    {"parameter.while-open", "getters work, setters are refused", set_while_open, 0, NULL},
    {"parameter.applied-batch", "what was set is what the driver opens with: io_batchsize", applied_batch, 0, NULL},
    {"parameter.applied-direct", "max_direct_io_size_kb", applied_direct, 0, NULL},
    {"parameter.applied-pinned", "max_device_pinned_mem_size_kb", applied_pinned, 0, NULL},
    {"parameter.applied-cache", "max_device_cache_size_kb", applied_cache, 0, NULL},
    {"parameter.applied-poll", "use_poll_mode", applied_poll, 0, NULL},
    {"parameter.applied-together", "several at once", applied_together, 0, NULL},
    {"parameter.slabs", "the posix pool's slabs", slabs, 0, NULL},
    {"parameter.from-json", "the file's value", from_json, 0, batch_in_json},
    {"parameter.over-json", "a setter over the file", setter_over_json, 0, batch_in_json},
    {"parameter.from-environment", "the environment over the file", from_environment, 0, env_says_yes},
    {"parameter.over-environment", "a setter over the environment", setter_over_environment, 0, env_says_no},
    {"parameter.level-environment", "CUFILE_LOGGING_LEVEL", level_from_environment, 0, level_in_environment},
    {"parameter.force-environment", "CUFILE_FORCE_COMPAT_MODE", force_from_environment, 0, force_in_environment},
    {0},
};
