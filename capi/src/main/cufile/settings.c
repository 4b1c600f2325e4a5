// Settings: those of the setters come before the environment, that before cufile.json, and that before the defaults. They are put
// together when the driver opens.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "parts.h"

#define CUFILE_PART "settings"

#define SIZES COUNT(((settings *)NULL)->sizes)
#define BOOLS COUNT(((settings *)NULL)->bools)
#define STRINGS COUNT(((settings *)NULL)->strings)
#define MOST_SLABS ((int)COUNT(((settings *)NULL)->slab_sizes))

typedef struct size_setting {
  const char *key, *variable;
  size_t usual, least, most;
  bool obeyed;
} size_setting;

typedef struct other_setting {
  const char *key, *variable, *usual;
  bool obeyed;
} other_setting;

// The defaults and limits are those of cuFile 1.15.
static const size_setting size_settings[SIZES] = {
    [CUFILE_PARAM_PROFILE_STATS] = {"profile.cufile_stats", NULL, 0, 0, 3, true},
    [CUFILE_PARAM_EXECUTION_MAX_IO_QUEUE_DEPTH] = {"execution.max_io_queue_depth", NULL, 128, 1, 256, false},
    [CUFILE_PARAM_EXECUTION_MAX_IO_THREADS] = {"execution.max_io_threads", NULL, 0, 0, 32, true},
    [CUFILE_PARAM_EXECUTION_MIN_IO_THRESHOLD_SIZE_KB] = {"execution.min_io_threshold_size_kb", NULL, 1024, 4, 4294967295, false},
    [CUFILE_PARAM_EXECUTION_MAX_REQUEST_PARALLELISM] = {"execution.max_request_parallelism", NULL, 0, 0, 8, true},
    [CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB] = {"properties.max_direct_io_size_kb", NULL, 16384, 64, 16384, false},
    [CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB] =
        {"properties.max_device_cache_size_kb", "CUFILE_MAX_DEVICE_CACHE_SIZE", 131072, 0, 134217728, false},
    [CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB] =
        {"properties.per_buffer_cache_size_kb", "CUFILE_PER_BUFFER_CACHE_SIZE", 1024, 64, 16384, false},
    [CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB] =
        {"properties.max_device_pinned_mem_size_kb", NULL, 33554432, 64, 134217728, false},
    [CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE] = {"properties.io_batchsize", NULL, 128, 1, 256, true},
    [CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB] = {"properties.poll_mode_max_size_kb", NULL, 4, 4, 18014398509481980, false},
    [CUFILE_PARAM_PROPERTIES_BATCH_IO_TIMEOUT_MS] = {"properties.max_batch_io_timeout_msecs", NULL, 5, 1, 1000, false},
};

static const other_setting bool_settings[BOOLS] = {
    [CUFILE_PARAM_PROPERTIES_USE_POLL_MODE] = {"properties.use_poll_mode", NULL, "false", false},
    [CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE] = {"properties.allow_compat_mode", "CUFILE_ALLOW_COMPAT_MODE", "true", true},
    [CUFILE_PARAM_FORCE_COMPAT_MODE] = {"properties.force_compat_mode", "CUFILE_FORCE_COMPAT_MODE", "false", true},
    [CUFILE_PARAM_FS_MISC_API_CHECK_AGGRESSIVE] = {"miscellaneous.api_check_aggressive", NULL, "false", false},
    [CUFILE_PARAM_EXECUTION_PARALLEL_IO] = {"execution.parallel_io", NULL, "false", false},
    [CUFILE_PARAM_PROFILE_NVTX] = {"profile.nvtx", "CUFILE_NVTX", "false", false},
    [CUFILE_PARAM_PROPERTIES_ALLOW_SYSTEM_MEMORY] = {"properties.allow_system_memory", NULL, "true", true},
    [CUFILE_PARAM_USE_PCIP2PDMA] = {"properties.use_pci_p2pdma", "CUFILE_USE_PCIP2PDMA", "false", false},
    [CUFILE_PARAM_PREFER_IO_URING] = {"properties.prefer_iouring", NULL, "false", false},
    [CUFILE_PARAM_FORCE_ODIRECT_MODE] = {"properties.force_odirect_mode", NULL, "false", false},
    [CUFILE_PARAM_SKIP_TOPOLOGY_DETECTION] = {"miscellaneous.skip_topology_detection", "CUFILE_SKIP_TOPOLOGY_DETECTION", "false", false},
    [CUFILE_PARAM_STREAM_MEMOPS_BYPASS] = {"miscellaneous.stream_memops_bypass", "CUFILE_STREAM_MEMOPS_BYPASS", "false", false},
};

static const other_setting string_settings[STRINGS] = {
    [CUFILE_PARAM_LOGGING_LEVEL] = {"logging.level", "CUFILE_LOGGING_LEVEL", "WARN", true},
    [CUFILE_PARAM_ENV_LOGFILE_PATH] = {"", "CUFILE_LOGFILE_PATH", "", true},
    [CUFILE_PARAM_LOG_DIR] = {"logging.dir", NULL, "", true},
};

// Of the setters, until the driver opens.
typedef struct staged {
  bool has_size[SIZES], has_bool[BOOLS], has_string[STRINGS], has_slabs;
  settings values;
} staged;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static staged stage;    // guarded by lock
static settings forced; // of the open driver, guarded by lock
static bool open;       // guarded by lock

void settings_fork(bool begins) {
  if (begins) {
    pthread_mutex_lock(&lock);
  } else {
    pthread_mutex_unlock(&lock);
  }
}

// What transfers ask of the open driver, without the lock.
static atomic_bool quick_bools[BOOLS];
static atomic_size_t quick_sizes[SIZES];

// What is to be said in the log once there is one.
typedef struct remarks {
  size_t used;
  int left_out; // for want of room
  char text[8192];
  settings *to;
} remarks;

static void remark(remarks *r, const char *what, const char *name, const char *value) {
  int more = snprintf(r->text + r->used, sizeof r->text - r->used, "%s: %s%s%s\n", what, name, value[0] != 0 ? " = " : "", value);
  if (more > 0 && (size_t)more < sizeof r->text - r->used) {
    r->used += (size_t)more;
  } else {
    r->text[r->used] = 0;
    r->left_out++;
  }
}

static bool parse_bool(const char *text, bool *value) {
  static const char *const yes[] = {"true", "1", "yes", "on"}, *const no[] = {"false", "0", "no", "off"};
  for (size_t i = 0; i < COUNT(yes); i++) {
    if (strcasecmp(text, yes[i]) == 0 || strcasecmp(text, no[i]) == 0) {
      *value = strcasecmp(text, yes[i]) == 0;
      return true;
    }
  }
  return false;
}

static bool fits(int which, size_t value) {
  const size_setting *s = &size_settings[which];
  const bool parts = which == CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB || which == CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB;
  const size_t unit = parts ? 64 : which == CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB ? 4 : 1;
  return value >= s->least && value <= s->most && value % unit == 0;
}

static void take_size(remarks *r, int which, const char *name, const char *text) {
  char *end;
  errno = 0;
  unsigned long long value = strtoull(text, &end, 10);
  if (errno != 0 || end == text || *end != 0 || text[0] == '-' || !fits(which, value)) {
    remark(r, "not taken, it is out of range or no number", name, text);
    return;
  }
  r->to->sizes[which] = value;
}

static void take_bool(remarks *r, int which, const char *name, const char *text) {
  if (!parse_bool(text, &r->to->bools[which])) {
    remark(r, "not taken, it is neither true nor false", name, text);
  }
}

static void take_string(remarks *r, int which, const char *name, const char *text) {
  if ((which == CUFILE_PARAM_LOGGING_LEVEL && log_level_of(text) < 0) || strlen(text) >= sizeof r->to->strings[which]) {
    remark(r, "not taken, there is no such level or it is too long", name, text);
    return;
  }
  strcpy(r->to->strings[which], text);
}

static int slab_number(const char *text, size_t *value) {
  char *end;
  *value = strtoull(text, &end, 10);
  return end != text && *end == 0 && *value > 0;
}

static void visit(void *data, const char *name, int number, const char *text) {
  remarks *r = data;
  for (int i = 0; i < (int)SIZES; i++) {
    if (strcmp(name, size_settings[i].key) == 0) {
      take_size(r, i, name, text);
      if (!size_settings[i].obeyed) {
        remark(r, "has no effect here", name, text);
      }
      return;
    }
  }
  for (int i = 0; i < (int)BOOLS; i++) {
    if (strcmp(name, bool_settings[i].key) == 0) {
      take_bool(r, i, name, text);
      if (!bool_settings[i].obeyed) {
        remark(r, "has no effect here", name, text);
      }
      return;
    }
  }
  for (int i = 0; i < (int)STRINGS; i++) {
    if (strcmp(name, string_settings[i].key) == 0) {
      take_string(r, i, name, text);
      return;
    }
  }
  bool count = strcmp(name, "properties.posix_pool_slab_count") == 0;
  if ((count || strcmp(name, "properties.posix_pool_slab_size_kb") == 0) && number >= 0 && number < MOST_SLABS) {
    if (slab_number(text, &(count ? r->to->slab_counts : r->to->slab_sizes)[number])) {
      r->to->slabs = number + 1;
    }
  }
  if (number <= 0) {
    remark(r, "has no effect here", name, number < 0 ? text : "");
  }
}

static void usual(settings *to) {
  static const size_t sizes[] = {4, 1024, 16384}, counts[] = {128, 64, 64};
  memset(to, 0, sizeof *to);
  for (int i = 0; i < (int)SIZES; i++) {
    to->sizes[i] = size_settings[i].usual;
  }
  for (int i = 0; i < (int)BOOLS; i++) {
    parse_bool(bool_settings[i].usual, &to->bools[i]);
  }
  for (int i = 0; i < (int)STRINGS; i++) {
    strcpy(to->strings[i], string_settings[i].usual);
  }
  to->slabs = COUNT(sizes);
  memcpy(to->slab_sizes, sizes, sizeof sizes);
  memcpy(to->slab_counts, counts, sizeof counts);
}

static void read_file(remarks *r) {
  const char *named = secure_getenv("CUFILE_ENV_PATH_JSON");
  const char *path = named != NULL && *named != 0 ? named : "/etc/cufile.json";
  enum { MOST = 1 << 20 };
  FILE *file = fopen(path, "re");
  if (file == NULL) {
    if (path == named) {
      remark(r, "cannot be read, so the defaults are used", path, strerror(errno));
    }
    return;
  }
  char *text = malloc(MOST);
  size_t length = text == NULL ? 0 : fread(text, 1, MOST - 1, file);
  fclose(file);
  if (text != NULL) {
    text[length] = 0;
    const char *wrong = json_visit(text, visit, r);
    if (wrong != NULL) {
      remark(r, "is no JSON, what comes before the mistake is used", path, wrong);
    }
  }
  free(text);
}

static void read_environment(remarks *r) {
  for (int i = 0; i < (int)SIZES; i++) {
    const char *text = size_settings[i].variable == NULL ? NULL : secure_getenv(size_settings[i].variable);
    if (text != NULL) {
      take_size(r, i, size_settings[i].variable, text);
    }
  }
  for (int i = 0; i < (int)BOOLS; i++) {
    const char *text = bool_settings[i].variable == NULL ? NULL : secure_getenv(bool_settings[i].variable);
    if (text != NULL) {
      take_bool(r, i, bool_settings[i].variable, text);
    }
  }
  for (int i = 0; i < (int)STRINGS; i++) {
    const char *text = string_settings[i].variable == NULL ? NULL : secure_getenv(string_settings[i].variable);
    if (text != NULL) {
      take_string(r, i, string_settings[i].variable, text);
    }
  }
}

// With the lock.
static void make(remarks *r) {
  char text[32];
  usual(r->to);
  read_file(r);
  read_environment(r);
  for (int i = 0; i < (int)SIZES; i++) {
    if (stage.has_size[i]) {
      snprintf(text, sizeof text, "%zu", stage.values.sizes[i]);
      take_size(r, i, size_settings[i].key, text);
    }
  }
  for (int i = 0; i < (int)BOOLS; i++) {
    if (stage.has_bool[i]) {
      r->to->bools[i] = stage.values.bools[i];
    }
  }
  for (int i = 0; i < (int)STRINGS; i++) {
    if (stage.has_string[i]) {
      take_string(r, i, string_settings[i].key, stage.values.strings[i]);
    }
  }
  if (stage.has_slabs) {
    r->to->slabs = stage.values.slabs;
    memcpy(r->to->slab_sizes, stage.values.slab_sizes, sizeof r->to->slab_sizes);
    memcpy(r->to->slab_counts, stage.values.slab_counts, sizeof r->to->slab_counts);
  }
}

void settings_open(settings *to) {
  remarks r = {.to = to};
  pthread_mutex_lock(&lock);
  make(&r);
  forced = *to;
  open = true;
  memset(&stage, 0, sizeof stage);
  for (int i = 0; i < (int)BOOLS; i++) {
    atomic_store(&quick_bools[i], to->bools[i]);
  }
  for (int i = 0; i < (int)SIZES; i++) {
    atomic_store(&quick_sizes[i], to->sizes[i]);
  }
  pthread_mutex_unlock(&lock);
  log_open(to->strings[CUFILE_PARAM_ENV_LOGFILE_PATH], to->strings[CUFILE_PARAM_LOG_DIR], to->strings[CUFILE_PARAM_LOGGING_LEVEL]);
  char *rest = r.text;
  for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
    if (*line != 0) {
      LOG(strncmp(line, "has no effect", 13) == 0 ? LOG_INFO : LOG_WARN, "setting %s", line);
    }
  }
  if (r.left_out > 0) {
    LOG(LOG_WARN, "%d more settings are not taken or have no effect here: there is no room for their names", r.left_out);
  }
}

void settings_now(settings *to) {
  remarks r = {.to = to};
  pthread_mutex_lock(&lock);
  if (open) {
    *to = forced;
  } else {
    make(&r);
  }
  pthread_mutex_unlock(&lock);
}

bool setting_bool(CUFileBoolConfigParameter_t which) {
  return atomic_load_explicit(&quick_bools[which], memory_order_relaxed);
}

size_t setting_size(CUFileSizeTConfigParameter_t which) {
  return atomic_load_explicit(&quick_sizes[which], memory_order_relaxed);
}

void settings_release(void) {
  pthread_mutex_lock(&lock);
  open = false;
  pthread_mutex_unlock(&lock);
}

bool setting_change(CUFileSizeTConfigParameter_t which, size_t value) {
  if (!fits((int)which, value)) {
    return false;
  }
  pthread_mutex_lock(&lock);
  forced.sizes[which] = value;
  atomic_store(&quick_sizes[which], value);
  pthread_mutex_unlock(&lock);
  return true;
}

void setting_poll(bool poll) {
  pthread_mutex_lock(&lock);
  forced.bools[CUFILE_PARAM_PROPERTIES_USE_POLL_MODE] = poll;
  pthread_mutex_unlock(&lock);
}

// ---- cuFile's functions

// Everything of one setting, under the lock: the setter's part of it is told where it may be stored.
static CUfileError_t store(bool known, void (*part)(const void *argument), const void *argument) {
  if (!known) {
    return status_of(CU_FILE_INVALID_VALUE);
  }
  pthread_mutex_lock(&lock);
  CUfileOpError code = open ? CU_FILE_DRIVER_ALREADY_OPEN : CU_FILE_SUCCESS;
  if (!open) {
    part(argument);
  }
  pthread_mutex_unlock(&lock);
  return status_of(code);
}

typedef struct wanted {
  int which;
  size_t size;
  bool yes;
  const char *text;
  const size_t *sizes, *counts;
  int slabs;
} wanted;

static void store_size(const void *argument) {
  const wanted *w = argument;
  stage.has_size[w->which] = true;
  stage.values.sizes[w->which] = w->size;
}

static void store_bool(const void *argument) {
  const wanted *w = argument;
  stage.has_bool[w->which] = true;
  stage.values.bools[w->which] = w->yes;
}

static void store_string(const void *argument) {
  const wanted *w = argument;
  stage.has_string[w->which] = true;
  strcpy(stage.values.strings[w->which], w->text);
}

static void store_slabs(const void *argument) {
  const wanted *w = argument;
  stage.has_slabs = true;
  stage.values.slabs = w->slabs;
  memcpy(stage.values.slab_sizes, w->sizes, (size_t)w->slabs * sizeof *w->sizes);
  memcpy(stage.values.slab_counts, w->counts, (size_t)w->slabs * sizeof *w->counts);
}

CUfileError_t cuFileSetParameterSizeT(CUFileSizeTConfigParameter_t param, size_t value) {
  const wanted w = {.which = (int)param, .size = value};
  return store((size_t)param < SIZES, store_size, &w);
}

CUfileError_t cuFileSetParameterBool(CUFileBoolConfigParameter_t param, bool value) {
  const wanted w = {.which = (int)param, .yes = value};
  return store((size_t)param < BOOLS, store_bool, &w);
}

CUfileError_t cuFileSetParameterString(CUFileStringConfigParameter_t param, const char *desc_str) {
  const wanted w = {.which = (int)param, .text = desc_str};
  return store((size_t)param < STRINGS && desc_str != NULL && strlen(desc_str) < sizeof stage.values.strings[0], store_string, &w);
}

CUfileError_t cuFileSetParameterPosixPoolSlabArray(const size_t *size_values, const size_t *count_values, int len) {
  const wanted w = {.sizes = size_values, .counts = count_values, .slabs = len};
  return store(size_values != NULL && count_values != NULL && len > 0 && len <= MOST_SLABS, store_slabs, &w);
}

CUfileError_t cuFileGetParameterSizeT(CUFileSizeTConfigParameter_t param, size_t *value) {
  settings now;
  if ((size_t)param >= SIZES || value == NULL) {
    return status_of(CU_FILE_INVALID_VALUE);
  }
  settings_now(&now);
  *value = now.sizes[param];
  return status_of(CU_FILE_SUCCESS);
}

CUfileError_t cuFileGetParameterBool(CUFileBoolConfigParameter_t param, bool *value) {
  settings now;
  if ((size_t)param >= BOOLS || value == NULL) {
    return status_of(CU_FILE_INVALID_VALUE);
  }
  settings_now(&now);
  *value = now.bools[param];
  return status_of(CU_FILE_SUCCESS);
}

CUfileError_t cuFileGetParameterString(CUFileStringConfigParameter_t param, char *desc_str, int len) {
  settings now;
  if ((size_t)param >= STRINGS || desc_str == NULL || len <= 0) {
    return status_of(CU_FILE_INVALID_VALUE);
  }
  settings_now(&now);
  const char *text = now.strings[param];
  if (strlen(text) >= (size_t)len || (param == CUFILE_PARAM_ENV_LOGFILE_PATH && *text == 0)) {
    return status_of(CU_FILE_INVALID_VALUE);
  }
  strcpy(desc_str, text);
  return status_of(CU_FILE_SUCCESS);
}

// The level of statistics has a function of its own, and no limits here.
CUfileError_t cuFileGetParameterMinMaxValue(CUFileSizeTConfigParameter_t param, size_t *min_value, size_t *max_value) {
  if ((size_t)param >= SIZES || param == CUFILE_PARAM_PROFILE_STATS || min_value == NULL || max_value == NULL) {
    return status_of(CU_FILE_INVALID_VALUE);
  }
  *min_value = size_settings[param].least;
  *max_value = size_settings[param].most;
  return status_of(CU_FILE_SUCCESS);
}

CUfileError_t cuFileGetParameterPosixPoolSlabArray(size_t *size_values, size_t *count_values, int len) {
  settings now;
  settings_now(&now);
  if (size_values == NULL || count_values == NULL || len != now.slabs) {
    return status_of(CU_FILE_INVALID_VALUE);
  }
  memcpy(size_values, now.slab_sizes, (size_t)len * sizeof *size_values);
  memcpy(count_values, now.slab_counts, (size_t)len * sizeof *count_values);
  return status_of(CU_FILE_SUCCESS);
}
