package io.gpunvme.nvme.driver;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.CommandAbortedException;
import io.gpunvme.nvme.ControllerFatalException;
import io.gpunvme.nvme.DeviceGoneException;
import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.NvmeStatusException;
import io.gpunvme.nvme.NvmeTimeoutException;
import io.gpunvme.nvme.ProtocolException;

/** Makes an exception of the same kind out of another one, which becomes its cause. */
final class Failures {
  private Failures() {}

  /** An exception of the same kind with the caller's stack; {@code first} becomes its cause. */
  static RuntimeException again(RuntimeException first) {
    String message = "the controller is out of service: " + first.getMessage();
    String own = String.valueOf(first.getMessage());
    RuntimeException copy =
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

  /** The same exception with {@code context} and a colon before its message. */
  static RuntimeException during(String context, RuntimeException first) {
    String message = context + ": " + first.getMessage();
    RuntimeException copy =
        switch (first) {
          case NvmeStatusException e -> new NvmeStatusException(message, e);
          case NvmeTimeoutException e -> new NvmeTimeoutException(message);
          case ControllerFatalException e -> new ControllerFatalException(message);
          case DeviceGoneException e -> new DeviceGoneException(message);
          case CommandAbortedException e -> new CommandAbortedException(message);
          case ProtocolException e -> new ProtocolException(message);
          case InvalidRequestException e -> new InvalidRequestException(message);
          case DmaMappingException e -> new DmaMappingException(message);
          default -> throw new IllegalArgumentException("no failure of a controller", first);
        };
    copy.initCause(first);
    return copy;
  }
}
