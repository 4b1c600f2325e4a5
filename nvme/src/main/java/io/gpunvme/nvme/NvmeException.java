package io.gpunvme.nvme;

import org.jspecify.annotations.Nullable;

/** The root of everything that can go wrong between this host and an NVMe controller. */
public abstract sealed class NvmeException extends RuntimeException
    permits NvmeStatusException,
        NvmeTimeoutException,
        ControllerFatalException,
        DeviceGoneException,
        CommandAbortedException,
        ProtocolException,
        DmaMappingException {
  private static final long serialVersionUID = 1;

  NvmeException(String message) {
    super(message);
  }

  NvmeException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
