package io.gpunvme.tools.fleet;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.base.Printable;
import java.math.BigDecimal;
import java.util.Arrays;
import java.util.Locale;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** What a fleet's machines and links can do, by name. */
public enum Parameter {
  /** Reading, of one SSD. */
  SSD_READ("GB/s", 1e9, 0.001, 1e4, "an SSD reads"),
  /** Writing, of one SSD. */
  SSD_WRITE("GB/s", 1e9, 0.001, 1e4, "an SSD writes"),
  /** Staging in host memory, of a machine. */
  HOST("GB/s", 1e9, 0.001, 1e6, "a machine's memory stages, for all its GPUs together"),
  /** Files through pinned memory to one GPU. */
  GPU_READ("GB/s", 1e9, 0.001, 1e5, "files reach one GPU through pinned memory"),
  /** The PCIe link of a GPU. */
  GPU_LINK("GB/s", 1e9, 0.001, 1e5, "a GPU's link to the host carries each way"),
  /** From GPU to GPU of one machine. */
  PEER_LINK("GB/s", 1e9, 0.001, 1e5, "a GPU's link to the other GPUs carries, both ways together"),
  /** Network of one machine. */
  NIC("GB/s", 1e9, 0.001, 1e5, "a machine's network cards carry each way"),
  /** How much narrower the network is above the machines. */
  OVERSUBSCRIPTION(
      "times", 1, 1, 1e4, "as much as the fabric carries can the machines' cards send"),
  /** From machine to machine. */
  HOP("us", 1e-6, 0, 1e6, "a step of a collective waits for the network"),
  /** Network of one target of the pool. */
  TARGET_NIC("GB/s", 1e9, 0.001, 1e5, "a target's network cards carry each way"),
  /** SSDs behind one target of the pool. */
  TARGET_SSDS("SSDs", 1, 1, 1e4, "are behind one target"),
  /** Bytes of a file of a model. */
  FILE("GB", 1e9, 0.001, 1e6, "is in one file of a model"),
  /** Bytes that are gathered at a time. */
  BUCKET("MiB", 1 << 20, 0.004, 1e9, "is gathered at a time by a collective"),
  /** Opening a file. */
  OPEN("ms", 1e-3, 0, 1e6, "opening a file takes, one after the other in a process"),
  /** Memory for tensors. */
  ALLOCATE("GB/s", 1e9, 0.001, 1e6, "memory for tensors is taken, one GPU after the other"),
  /** Pinned memory for a GPU's first file; those after it find it there. */
  PIN("ms", 1e-3, 0, 1e6, "pinned memory takes for a GPU's first file, one after the other"),
  /** What else a GPU's first read of a file takes. */
  START("ms", 1e-3, 0, 1e6, "else the first read of a file takes, each GPU for itself"),
  /** PyTorch's own work in a load of a checkpoint. */
  DCP("ms", 1e-3, 0, 1e6, "DCP takes to load a checkpoint beside its bytes"),
  /** Files that a rank writes of a checkpoint. */
  DCP_FILES("files", 1, 1, 64, "a GPU writes for a checkpoint, and reads at once"),
  /** Until a lost machine is missed and replaced. */
  DETECT("s", 1, 0, 1e6, "it takes until a lost machine is missed and another begins");

  private static final Pattern NUMBER = Pattern.compile("\\d{1,12}(\\.\\d{1,12})?");

  private final String unit;
  private final double scale;
  private final double least;
  private final double most;
  private final String meaning;

  Parameter(String unit, double scale, double least, double most, String meaning) {
    this.unit = unit;
    this.scale = scale;
    this.least = least;
    this.most = most;
    this.meaning = meaning;
  }

  /** Its name on the command line and in files: {@code ssd-read}. */
  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT).replace('_', '-');
  }

  /** Of its value. */
  public String unit() {
    return unit;
  }

  /** The end of a sentence that begins with the value. */
  public String meaning() {
    return meaning;
  }

  /** Bytes, bytes a second, seconds or a count of 1 in its unit. */
  double scale() {
    return scale;
  }

  /**
   * The parameter of that name.
   *
   * @throws InvalidRequestException if there is none
   */
  static Parameter named(String name) {
    return Arrays.stream(values())
        .filter(one -> one.toString().equals(name))
        .findFirst()
        .orElseThrow(
            () ->
                new InvalidRequestException(
                    "no parameter '%s' of a fleet; there are %s"
                        .formatted(
                            Printable.quote(name),
                            Arrays.stream(values())
                                .map(Parameter::toString)
                                .collect(Collectors.joining(", ")))));
  }

  /**
   * Reads a value: a number, with the parameter's unit or without one.
   *
   * @throws InvalidRequestException if it is something else, or out of range
   */
  double parse(String text) {
    String number = text.endsWith(unit) ? text.substring(0, text.length() - unit.length()) : text;
    if (!NUMBER.matcher(number.strip()).matches()) {
      throw new InvalidRequestException(
          "%s=%s: not a number of %s, such as %s=%s%s"
              .formatted(this, Printable.quote(text), unit, this, exampleText(), unit));
    }
    return checked(new BigDecimal(number.strip()).doubleValue());
  }

  /**
   * The value, if it is in range.
   *
   * @throws InvalidRequestException if not, or if it is not a number
   */
  double checked(double value) {
    if (!(value >= least && value <= most)) {
      throw new InvalidRequestException(
          "%s=%s: must be from %s to %s %s"
              .formatted(this, shown(value), shown(least), shown(most), unit));
    }
    return value;
  }

  private String exampleText() {
    return shown(Math.max(least, 1));
  }

  /** A number without trailing zeros and without an exponent. */
  static String shown(double value) {
    return Double.isFinite(value)
        ? BigDecimal.valueOf(value).stripTrailingZeros().toPlainString()
        : Double.toString(value);
  }
}
