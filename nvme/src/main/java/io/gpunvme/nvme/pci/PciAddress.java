package io.gpunvme.nvme.pci;

import io.gpunvme.base.InvalidRequestException;
import java.util.Comparator;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The address of a PCI function: {@code 0000:01:00.0}.
 *
 * @param domain 0..FFFFFFFFh; above FFFFh only where a bridge makes up domains
 * @param bus 0..FFh
 * @param device 0..1Fh
 * @param function 0..7
 */
public record PciAddress(int domain, int bus, int device, int function)
    implements Comparable<PciAddress> {
  private static final Pattern TEXT =
      Pattern.compile(
          "(?:(?<domain>\\p{XDigit}{4,8}):)?(?<bus>\\p{XDigit}{2})"
              + ":(?<device>[01]\\p{XDigit})\\.(?<function>[0-7])");

  private static final int HEX = 16;

  private static final Comparator<PciAddress> ORDER =
      Comparator.<PciAddress>comparingLong(a -> Integer.toUnsignedLong(a.domain))
          .thenComparingInt(PciAddress::bus)
          .thenComparingInt(PciAddress::device)
          .thenComparingInt(PciAddress::function);

  /** Checks the ranges. */
  public PciAddress {
    if (bus < 0 || bus > 0xFF || device < 0 || device > 0x1F || function < 0 || function > 7) {
      throw new InvalidRequestException(
          "no PCI function has bus %Xh, device %Xh, function %d".formatted(bus, device, function));
    }
  }

  /**
   * Reads {@code 0000:01:00.0} or, in domain 0, {@code 01:00.0}; hexadecimal, in either case.
   *
   * @throws InvalidRequestException if it is anything else
   */
  public static PciAddress parse(String text) {
    return find(text)
        .orElseThrow(
            () ->
                new InvalidRequestException(
                    "'"
                        + text
                        + "' is not a PCI address; one looks like 0000:01:00.0 (domain, bus,"
                        + " device, function; gpunvme list shows them)"));
  }

  /** As {@link #parse}, empty if it is anything else. */
  public static Optional<PciAddress> find(String text) {
    Matcher m = TEXT.matcher(text);
    if (!m.matches()) {
      return Optional.empty();
    }
    String domain = m.group("domain");
    return Optional.of(
        new PciAddress(
            domain == null ? 0 : Integer.parseUnsignedInt(domain, HEX),
            Integer.parseInt(m.group("bus"), HEX),
            Integer.parseInt(m.group("device"), HEX),
            Integer.parseInt(m.group("function"), HEX)));
  }

  @Override
  public int compareTo(PciAddress other) {
    return ORDER.compare(this, other);
  }

  /** As the kernel writes it, lower case: {@code 0000:01:00.0}. */
  @Override
  public String toString() {
    return "%04x:%02x:%02x.%d".formatted(domain, bus, device, function);
  }
}
