package io.gpunvme.storage;

import io.gpunvme.gpu.accel.DeviceBuffer;

/** Makes buffers known to the paths that transfer with them. Safe for all threads. */
interface Registrar {
  /** Does nothing: for paths that need to know nothing. */
  Registrar NONE =
      new Registrar() {
        @Override
        public boolean register(DeviceBuffer buffer) {
          return true;
        }

        @Override
        public void deregister(DeviceBuffer buffer) {}
      };

  /**
   * Registers a buffer with all paths.
   *
   * @return false if it was registered before
   * @throws io.gpunvme.storage.path.StorageException if a path cannot; then it is registered with
   *     none
   */
  boolean register(DeviceBuffer buffer);

  /** Takes that back, if it is registered. No transfer uses the buffer. */
  void deregister(DeviceBuffer buffer);
}
