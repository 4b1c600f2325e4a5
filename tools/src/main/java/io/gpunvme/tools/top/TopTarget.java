package io.gpunvme.tools.top;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.nvme.pci.PciAddress;
import io.gpunvme.storage.StorageAddress;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** A controller that somebody wants to see, by its address. Immutable. */
public final class TopTarget {
  private final String text;
  private final @Nullable DeviceAddress device;
  private final @Nullable PciAddress function;

  private TopTarget(String text, @Nullable DeviceAddress device, @Nullable PciAddress function) {
    this.text = text;
    this.device = device;
    this.function = function;
  }

  /**
   * Reads an address: a device, the PCI address of one ({@code 0000:01:00.0}) whoever drives it, or
   * a set, which means each member.
   *
   * @throws InvalidRequestException if it names no controller
   */
  public static List<TopTarget> parse(String text) {
    Optional<PciAddress> function = PciAddress.find(text);
    if (function.isPresent()) {
      return List.of(new TopTarget(text, null, function.get()));
    }
    StorageAddress address = StorageAddress.parse(text);
    List<StorageAddress> all = address.members().isEmpty() ? List.of(address) : address.members();
    return all.stream().map(one -> of(text, one)).toList();
  }

  private static TopTarget of(String text, StorageAddress address) {
    DeviceAddress device = address.device();
    if (device == null) {
      throw new InvalidRequestException(
          "'%s' names no controller: give an address such as vfio:0000:01:00.0 or sim:"
              .formatted(text));
    }
    return new TopTarget(device.toString(), device.absolute(), null);
  }

  /** Whether a process means this controller by an address. */
  boolean isMeantBy(String address) {
    try {
      DeviceAddress theirs = DeviceAddress.parse(address);
      return device == null
          ? theirs.place().equals(String.valueOf(function))
          : device.names(theirs);
    } catch (InvalidRequestException e) {
      // A process of another version has kinds of devices that this one has not.
      return false;
    }
  }

  /** The address as it was given. */
  @Override
  public String toString() {
    return text;
  }
}
