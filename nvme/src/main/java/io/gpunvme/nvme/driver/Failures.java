package io.gpunvme.nvme.driver;

import io.gpunvme.nvme.CommandAbortedException;
import io.gpunvme.nvme.ControllerFatalException;
import io.gpunvme.nvme.DeviceGoneException;
import io.gpunvme.nvme.InvalidRequestException;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.nvme.NvmeTimeoutException;

/** Makes an exception for each caller out of the one that put the controller out of service. */
final class Failures {
  private Failures() {}

  /** An exception of the same kind with the caller's stack; {@code first} becomes its cause. */
  static NvmeException again(NvmeException first) {
    String message = "the controller is out of service: " + first.getMessage();
    String own = String.valueOf(first.getMessage());
    NvmeException copy =
        switch (first) {
          case DeviceGoneException e -> new DeviceGoneException(message);
          case NvmeTimeoutException e -> new NvmeTimeoutException(message);
          case InvalidRequestException e -> new InvalidRequestException(own);
          case CommandAbortedException e -> new CommandAbortedException(own);
          default -> new ControllerFatalException(message);
        };
    copy.initCause(first);
    return copy;
  }
}
