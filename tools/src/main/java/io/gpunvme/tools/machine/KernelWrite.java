package io.gpunvme.tools.machine;

import java.nio.file.Path;

/**
 * One write to a file of sysfs.
 *
 * @param file where
 * @param text what, without the line end
 */
public record KernelWrite(Path file, String text) {
  /** As a shell would do it: {@code echo vfio-pci > /sys/…/driver_override}. */
  @Override
  public String toString() {
    return "echo %s> %s".formatted(text.isEmpty() ? "" : text + " ", file);
  }
}
