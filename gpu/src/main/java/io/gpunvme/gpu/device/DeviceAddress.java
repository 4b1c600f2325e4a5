package io.gpunvme.gpu.device;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.pci.PciAddress;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import org.jspecify.annotations.Nullable;

/**
 * The address of a device. Immutable.
 *
 * <ul>
 *   <li>{@code sim:size=1GiB,lba=4096}: an embedded controller and its options
 *   <li>{@code vfio:0000:01:00.0,iommufd=false}: a PCI function bound to vfio-pci
 *   <li>{@code kmod:0000:01:00.0}: a PCI function bound to the kernel module gpunvme
 *   <li>{@code sysfs:0000:01:00.0,unsafe=true}: a PCI function without a kernel driver
 *   <li>{@code vfio-user:/run/ssd.sock,timeout=5s}: a PCI function that another process emulates
 * </ul>
 *
 * <p>{@code vfio} and {@code sysfs} take {@code gpu-bar=0000:0a:00.0}: memory of that GPU is
 * searched behind its BAR 1 ({@code gpu-bar=0000:0a:00.0/2}: behind its BAR 2) and mapped for the
 * controller. The BAR must show all of the GPU's memory ({@link
 * io.gpunvme.gpu.bar.StaticBarFunction}).
 *
 * <p>{@code vfio}, {@code kmod} and {@code sysfs} take {@code numa=auto|off|NODE}: the NUMA node of
 * the SSD's memory and of the threads that serve it ({@link io.gpunvme.nvme.pci.NumaHome}).
 *
 * <p>The character after a backslash is taken literally, so a path may contain a comma.
 */
public final class DeviceAddress {
  /** Whose namespaces are pinned. */
  static final String PINNED = "pinned";

  private final Transport transport;
  private final String place;
  private final SequencedMap<String, String> options;

  private DeviceAddress(Transport transport, String place, SequencedMap<String, String> options) {
    this.transport = transport;
    this.place = place;
    this.options = options;
  }

  /** An embedded controller with its default options. */
  public static DeviceAddress embedded() {
    return new DeviceAddress(Transport.SIM, "", new LinkedHashMap<>());
  }

  /** A function of another process, which serves it at a socket. */
  public static DeviceAddress servedAt(Path socket) {
    return new DeviceAddress(Transport.VFIO_USER, socket.toString(), new LinkedHashMap<>())
        .absolute();
  }

  /** The ways that there are; those to a PCI function by its own address if the text is one. */
  private static InvalidRequestException noDevice(String text) {
    return new InvalidRequestException(
        "no device '%s': a device is an embedded controller (%s:key=value,…)"
                .formatted(text, Transport.SIM)
            + " or a PCI function (%s:%s, %s:…, %s:…, %s:SOCKET)"
                .formatted(
                    Transport.VFIO,
                    PciAddress.find(text).map(PciAddress::toString).orElse("0000:01:00.0"),
                    Transport.KMOD,
                    Transport.SYSFS,
                    Transport.VFIO_USER));
  }

  /**
   * Reads an address. Its options are checked when the device is opened.
   *
   * @throws InvalidRequestException if there is no such kind of device, or an option is not {@code
   *     key=value} or given twice
   */
  public static DeviceAddress parse(String text) {
    int colon = text.indexOf(':');
    String kind = colon < 0 ? text : text.substring(0, colon);
    String rest = colon < 0 ? "" : text.substring(colon + 1);
    List<String> parts = parts(rest);
    Transport transport = Transport.of(kind).orElseThrow(() -> noDevice(text));
    String place = transport.takePlace(text, parts);
    SequencedMap<String, String> options = new LinkedHashMap<>();
    parts.forEach(p -> addOption(p, options));
    return new DeviceAddress(transport, place, options);
  }

  /** What is between commas that have no backslash before them. */
  private static List<String> parts(String text) {
    List<String> parts = new ArrayList<>();
    if (text.isBlank()) {
      return parts;
    }
    StringBuilder part = new StringBuilder();
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (c == '\\' && i + 1 < text.length()) {
        part.append(text.charAt(++i));
      } else if (c == ',') {
        parts.add(part.toString());
        part.setLength(0);
      } else {
        part.append(c);
      }
    }
    parts.add(part.toString());
    return parts;
  }

  private static void addOption(String pair, Map<String, String> options) {
    int equals = pair.indexOf('=');
    if (equals < 1) {
      throw new InvalidRequestException("'" + pair + "' is not key=value");
    }
    String key = pair.substring(0, equals);
    if (options.putIfAbsent(key, pair.substring(equals + 1)) != null) {
      throw new InvalidRequestException(key + "= is given twice");
    }
  }

  /** The transport: the part before the colon. */
  public Transport transport() {
    return transport;
  }

  /** The place: {@code 0000:01:00.0}, a socket; empty for an embedded controller. */
  public String place() {
    return place;
  }

  /** Whether it is an embedded controller. */
  public boolean isEmbedded() {
    return transport == Transport.SIM;
  }

  /** The value of an option, or null if it is not given. */
  public @Nullable String option(String key) {
    return options.get(key);
  }

  /**
   * Whether to pin the memory of an embedded controller's namespaces for a GPU.
   *
   * @throws InvalidRequestException if it is neither true nor false
   */
  public boolean pinned() {
    return flag(PINNED);
  }

  /** Whether it is an embedded controller that loses all its data when it is closed. */
  public boolean forgets() {
    return isEmbedded() && options.keySet().stream().noneMatch(DeviceAddress::isFile);
  }

  private static boolean isFile(String key) {
    return key.equals("file") || key.endsWith(".file");
  }

  /** The same address for a process with another working directory. */
  public DeviceAddress absolute() {
    SequencedMap<String, String> all = new LinkedHashMap<>(options);
    if (isEmbedded()) {
      all.replaceAll((key, value) -> isFile(key) ? absolute(value) : value);
    }
    boolean socket = transport == Transport.VFIO_USER;
    return new DeviceAddress(transport, socket ? absolute(place) : place, all);
  }

  private static String absolute(String path) {
    return Path.of(path).toAbsolutePath().normalize().toString();
  }

  /**
   * Whether another address names the same device, whatever further options it has. {@code sim:}
   * names every embedded controller.
   */
  public boolean names(DeviceAddress other) {
    return transport == other.transport
        && place.equals(other.place)
        && other.options.entrySet().containsAll(options.entrySet());
  }

  /** An option that is true or false; false if it is not given. */
  boolean flag(String key) {
    String value = option(key);
    if (value == null || value.equals("false")) {
      return false;
    }
    if (value.equals("true")) {
      return true;
    }
    throw new InvalidRequestException(key + "=" + value + ": must be true or false");
  }

  /** What is given for each option, in the order given. */
  SequencedMap<String, String> options() {
    return Collections.unmodifiableSequencedMap(options);
  }

  /** Whether an option is given. */
  public boolean has(String key) {
    return options.containsKey(key);
  }

  /** The same address with an option set, replacing the value it may have. */
  public DeviceAddress with(String key, String value) {
    SequencedMap<String, String> all = new LinkedHashMap<>(options);
    all.put(key, value);
    return new DeviceAddress(transport, place, all);
  }

  /** The same address without an option. */
  public DeviceAddress without(String key) {
    SequencedMap<String, String> rest = new LinkedHashMap<>(options);
    rest.remove(key);
    return new DeviceAddress(transport, place, rest);
  }

  /** The options. */
  public String optionText() {
    StringBuilder text = new StringBuilder();
    options.forEach(
        (key, value) -> text.append(text.isEmpty() ? "" : ",").append(escape(key + "=" + value)));
    return text.toString();
  }

  private static String escape(String text) {
    return text.replace("\\", "\\\\").replace(",", "\\,");
  }

  /** The address as {@link #parse} reads it. */
  @Override
  public String toString() {
    String text = optionText();
    return transport + ":" + escape(place) + (place.isEmpty() || text.isEmpty() ? "" : ",") + text;
  }
}
