// cufile.json: what is accepted, and what the library does with a file that is broken or missing.
#include "suite.h"

static void batch_size_is(size_t expected) {
  size_t is = 0;
  open_driver();
  SUCCEEDS("get", cufile.GetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, &is));
  is_number("batch-size", (long long)is, (long long)expected);
}

static void comments_before(void) {
  configure_text("// first line\n{\n  \"properties\": { // of the driver\n    \"allow_compat_mode\": true, // yes\n"
                 "    /* more than\n       one line */ \"io_batchsize\": 32\n  }\n}\n");
}

static void comments(void) { batch_size_is(32); }

static void unknown_before(void) {
  configure_text("{\"properties\": {\"allow_compat_mode\": true, \"io_batchsize\": 32, \"no_such_key\": [1, {\"a\": null}]},"
                 " \"no_such_section\": {\"x\": 1}}");
}

static void unknown_keys(void) { batch_size_is(32); }

static void whole_before(void) {
  configure_text("{\n"
                 "  \"logging\": {\"level\": \"ERROR\"},\n"
                 "  \"profile\": {\"nvtx\": false, \"cufile_stats\": 1},\n"
                 "  \"execution\": {\"max_io_queue_depth\": 64, \"max_io_threads\": 2, \"parallel_io\": false,\n"
                 "    \"min_io_threshold_size_kb\": 4096, \"max_request_parallelism\": 2},\n"
                 "  \"properties\": {\"max_direct_io_size_kb\": 8192, \"max_device_cache_size_kb\": 65536,\n"
                 "    \"per_buffer_cache_size_kb\": 2048, \"max_device_pinned_mem_size_kb\": 1048576,\n"
                 "    \"use_poll_mode\": true, \"poll_mode_max_size_kb\": 8, \"use_pci_p2pdma\": false,\n"
                 "    \"allow_compat_mode\": true, \"io_batchsize\": 64, \"posix_pool_slab_size_kb\": [4, 1024],\n"
                 "    \"posix_pool_slab_count\": [16, 8], \"rdma_peer_affinity_policy\": \"RoundRobin\"},\n"
                 "  \"fs\": {\"generic\": {\"posix_unaligned_writes\": false}},\n"
                 "  \"denylist\": {\"drivers\": [], \"devices\": [], \"mounts\": [], \"filesystems\": []},\n"
                 "  \"miscellaneous\": {\"api_check_aggressive\": true}\n"
                 "}\n");
}

static void size_is(const char *id, CUFileSizeTConfigParameter_t param, size_t expected) {
  size_t is = 0;
  cufile.GetParameterSizeT(param, &is);
  is_number(id, (long long)is, (long long)expected);
}

static void bool_is(const char *id, CUFileBoolConfigParameter_t param, bool expected) {
  bool is = !expected;
  cufile.GetParameterBool(param, &is);
  is_number(id, is, expected);
}

static void every_key(void) {
  open_driver();
  size_is("cufile_stats", CUFILE_PARAM_PROFILE_STATS, 1);
  size_is("max_io_queue_depth", CUFILE_PARAM_EXECUTION_MAX_IO_QUEUE_DEPTH, 64);
  size_is("max_io_threads", CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, 2);
  size_is("min_io_threshold_size_kb", CUFILE_PARAM_EXECUTION_MIN_IO_THRESHOLD_SIZE_KB, 4096);
  size_is("max_request_parallelism", CUFILE_PARAM_EXECUTION_MAX_REQUEST_PARALLELISM, 2);
  size_is("max_direct_io_size_kb", CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB, 8192);
  size_is("max_device_cache_size_kb", CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB, 65536);
  size_is("per_buffer_cache_size_kb", CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB, 2048);
  size_is("max_device_pinned_mem_size_kb", CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB, 1048576);
  size_is("io_batchsize", CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, 64);
  size_is("poll_mode_max_size_kb", CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB, 8);
  bool_is("use_poll_mode", CUFILE_PARAM_PROPERTIES_USE_POLL_MODE, true);
  bool_is("allow_compat_mode", CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE, true);
  bool_is("api_check_aggressive", CUFILE_PARAM_FS_MISC_API_CHECK_AGGRESSIVE, true);
  bool_is("parallel_io", CUFILE_PARAM_EXECUTION_PARALLEL_IO, false);
  bool_is("nvtx", CUFILE_PARAM_PROFILE_NVTX, false);
  bool_is("use_pci_p2pdma", CUFILE_PARAM_USE_PCIP2PDMA, false);
  size_t slab_sizes[2] = {0}, counts[2] = {0};
  SUCCEEDS("slabs", cufile.GetParameterPosixPoolSlabArray(slab_sizes, counts, 2));
  is_true("slab-values", slab_sizes[0] == 4 && slab_sizes[1] == 1024 && counts[0] == 16 && counts[1] == 8, "4 1024, 16 8",
          text("%zu %zu, %zu %zu", slab_sizes[0], slab_sizes[1], counts[0], counts[1]));
  CUfileDrvProps_t p = {0};
  SUCCEEDS("properties", cufile.DriverGetProperties(&p));
  is_number("property-direct-io", (long long)p.nvfs.max_direct_io_size, 8192);
  is_number("property-batch-size", p.max_batch_io_size, 64);
  is_number("property-poll-threshold", (long long)p.nvfs.poll_thresh_size, 8);
  int level = -1;
  SUCCEEDS("stats-level", cufile.GetStatsLevel(&level));
  is_number("stats-level-is", level, 1);
}

static void broken_before(void) { configure_text("{\"properties\": {\"allow_compat_mode\": tru"); }
static void empty_before(void) { configure_text(""); }
static void types_before(void) { configure_text("{\"properties\": {\"allow_compat_mode\": \"yes\", \"io_batchsize\": \"many\"}}"); }
static void range_before(void) { configure_text("{\"properties\": {\"allow_compat_mode\": true, \"io_batchsize\": 1000000, \"max_direct_io_size_kb\": 100}}"); }
static void array_before(void) { configure_text("[1, 2, 3]"); }
static void missing_before(void) { setenv("CUFILE_ENV_PATH_JSON", "/nowhere/cufile.json", 1); }
static void folder_before(void) { setenv("CUFILE_ENV_PATH_JSON", "/", 1); }
static void no_file_before(void) { unsetenv("CUFILE_ENV_PATH_JSON"); }

// What a file that is no good leads to is not documented; that the process stays is expected of any library.
static void no_good(void) {
  size_t size = 0;
  observe("open", error_text(cufile.DriverOpen()));
  CUfileError_t error = cufile.GetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, &size);
  observe("get", error.err == CU_FILE_SUCCESS ? text("%zu", size) : error_text(error));
  bool allowed = false;
  cufile.GetParameterBool(CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE, &allowed);
  observe("compat-mode", allowed ? "true" : "false");
  CUfileHandle_t handle = NULL;
  observe("register", error_text(register_fd(&handle, new_file("file", O_RDWR, 1, 4096))));
}

static void no_log_here_before(void) {
  configure("", "");
  setenv("CUFILE_LOGGING_LEVEL", "TRACE", 1);
}

static void log_folder(void) {
  open_driver();
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 4096));
  cufile.HandleDeregister(handle);
  observe("cufile.log-where-logging.dir-says", access("cufile.log", F_OK) == 0 ? "there" : "none");
}

static void log_file_before(void) {
  char folder[1024];
  if (getcwd(folder, sizeof folder) != NULL) {
    setenv("CUFILE_LOGFILE_PATH", text("%s/named.log", folder), 1);
  }
  setenv("CUFILE_LOGGING_LEVEL", "TRACE", 1);
}

static void log_file(void) {
  open_driver();
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 4096));
  cufile.HandleDeregister(handle);
  bool there = access("named.log", F_OK) == 0;
  is_true("CUFILE_LOGFILE_PATH", there, "a log there", there ? "a log there" : "none");
}

static void no_compat_before(void) { configure_text("{\"properties\": {\"allow_compat_mode\": false}}"); }

static void no_compat(void) {
  CUfileError_t error = cufile.DriverOpen();
  observe("open", error_text(error));
  CUfileHandle_t handle = NULL;
  observe("register", error_text(register_fd(&handle, new_file("file", O_RDWR, 1, 4096))));
}

const struct group config_groups[] = {
    {"config.comments", "both kinds of comments", comments, 0, comments_before},
    {"config.unknown-keys", "keys and sections that nobody knows", unknown_keys, 0, unknown_before},
    {"config.every-key", "each key is what its getter gives", every_key, 0, whole_before},
    {"config.broken", "no JSON", no_good, MAY_CRASH, broken_before},
    {"config.empty", "an empty file", no_good, MAY_CRASH, empty_before},
    {"config.types", "values of another type", no_good, MAY_CRASH, types_before},
    {"config.range", "values out of range", no_good, MAY_CRASH, range_before},
    {"config.array", "JSON that is no object", no_good, MAY_CRASH, array_before},
    {"config.missing", "CUFILE_ENV_PATH_JSON names no file", no_good, MAY_CRASH, missing_before},
    {"config.folder", "CUFILE_ENV_PATH_JSON names a folder", no_good, MAY_CRASH, folder_before},
    {"config.default", "CUFILE_ENV_PATH_JSON is not set", no_good, MAY_CRASH, no_file_before},
    {"config.log-folder", "logging.dir", log_folder, 0, no_log_here_before},
    {"config.log-file", "CUFILE_LOGFILE_PATH", log_file, 0, log_file_before},
    {"config.no-compat", "allow_compat_mode false", no_compat, 0, no_compat_before},
    {0},
};
