// A stand-in for libnvidia-ml.so.1: GPUs and NVLinks as the test says. A second nvmlInit without
// nvmlShutdown, or a question outside of both, is a misuse.
#include <stdio.h>
#include <string.h>

enum { OK = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, LINKS = 18, GPUS = 8 };

struct link {
  int active, version, type;
  char remote[33];
};

struct gpu {
  char address[33];
  int nvlink;
  struct link links[LINKS];
};

struct pci_info {
  char legacy[16];
  unsigned domain, bus, device, id, subsystem;
  char bus_id[32];
};

static struct gpu gpus[GPUS];
static unsigned gpu_count;
static int open_count, init_code;

void fake_nvml_reset(void) {
  memset(gpus, 0, sizeof gpus);
  gpu_count = 0;
  open_count = 0;
  init_code = OK;
}

int fake_nvml_open(void) { return open_count; }

void fake_nvml_fail_init(int code) { init_code = code; }

// A GPU at an address of up to 32 characters: NVML's field may be full.
void fake_nvml_gpu(const char *address) {
  strncpy(gpus[gpu_count++].address, address, 32);
}

void fake_nvml_link(int gpu, int link, int version, int type, const char *remote) {
  struct link *l = &gpus[gpu].links[link];
  gpus[gpu].nvlink = 1;
  l->active = 1;
  l->version = version;
  l->type = type;
  strncpy(l->remote, remote, 32);
}

int nvmlInit_v2(void) {
  if (init_code != OK) {
    return init_code;
  }
  open_count++;
  return OK;
}

int nvmlShutdown(void) {
  open_count--;
  return OK;
}

const char *nvmlErrorString(int code) {
  return code == 9 ? "Driver Not Loaded" : "Some Error";
}

int nvmlDeviceGetCount_v2(unsigned *count) {
  *count = gpu_count;
  return open_count == 1 ? OK : UNINITIALIZED;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct gpu **device) {
  if (index >= gpu_count) {
    return INVALID_ARGUMENT;
  }
  *device = &gpus[index];
  return OK;
}

static void put(struct pci_info *info, const char *address) {
  memset(info, 0x7f, sizeof *info);
  memset(info->bus_id, 0, sizeof info->bus_id);
  memcpy(info->bus_id, address, strnlen(address, sizeof info->bus_id));
}

int nvmlDeviceGetPciInfo_v3(struct gpu *device, struct pci_info *info) {
  put(info, device->address);
  return OK;
}

static int refused(const struct gpu *device, unsigned link) {
  return !device->nvlink ? NOT_SUPPORTED : link >= LINKS ? INVALID_ARGUMENT : OK;
}

int nvmlDeviceGetNvLinkState(struct gpu *device, unsigned link, int *active) {
  int code = refused(device, link);
  if (code == OK) {
    *active = device->links[link].active;
  }
  return code;
}

int nvmlDeviceGetNvLinkVersion(struct gpu *device, unsigned link, unsigned *version) {
  int code = refused(device, link);
  if (code == OK) {
    *version = (unsigned)device->links[link].version;
  }
  return code;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(struct gpu *device, unsigned link, int *type) {
  int code = refused(device, link);
  if (code == OK) {
    *type = device->links[link].type;
  }
  return code;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(
    struct gpu *device, unsigned link, struct pci_info *info) {
  int code = refused(device, link);
  if (code == OK && device->links[link].remote[0] == 0) {
    code = NOT_SUPPORTED;
  }
  if (code == OK) {
    put(info, device->links[link].remote);
  }
  return code;
}
