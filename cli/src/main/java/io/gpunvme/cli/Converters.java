package io.gpunvme.cli;

import io.gpunvme.base.ByteRange;
import io.gpunvme.base.ByteSize;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import java.math.BigDecimal;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** How option values are read. */
final class Converters {
  private Converters() {}

  /** A size in bytes: {@code 64MiB}. */
  static final class Size implements ITypeConverter<Long> {
    @Override
    public Long convert(String text) {
      try {
        return ByteSize.parse(text);
      } catch (InvalidRequestException e) {
        throw new TypeConversionException(String.valueOf(e.getMessage()));
      }
    }
  }

  /** Bytes a second, more than zero: {@code 12GB/s}, {@code 800MiB/s}. */
  static final class Rate implements ITypeConverter<Double> {
    private static final Pattern FORM =
        Pattern.compile("(?<number>\\d{1,9}(\\.\\d{1,9})?) ?(?<prefix>[kMGT])(?<binary>i?)B/s");
    private static final String PREFIXES = "kMGT";
    private static final double DECIMAL = 1000;
    private static final double BINARY = 1024;

    @Override
    public Double convert(String text) {
      Matcher form = FORM.matcher(text);
      if (form.matches()) {
        double unit = form.group("binary").isEmpty() ? DECIMAL : BINARY;
        double factor = Math.pow(unit, 1 + PREFIXES.indexOf(form.group("prefix")));
        double rate = Double.parseDouble(form.group("number")) * factor;
        if (rate > 0) {
          return rate;
        }
      }
      throw new TypeConversionException("'" + text + "' is not a rate such as 12GB/s or 800MiB/s");
    }
  }

  /** Bytes of something: {@code 1GiB+64MiB}. */
  static final class Range implements ITypeConverter<ByteRange> {
    @Override
    public ByteRange convert(String text) {
      try {
        return ByteRange.parse(text);
      } catch (InvalidRequestException e) {
        throw new TypeConversionException(e.getMessage() + " (OFFSET+SIZE, e.g. 1GiB+64MiB)");
      }
    }
  }

  /** The longest transfer of one command, in the range of {@code ControllerOptions}. */
  static final class Transfer implements ITypeConverter<Long> {
    private static final long UNIT = 4096;
    private static final long MOST = 1L << 30;

    @Override
    public Long convert(String text) {
      long bytes = new Size().convert(text);
      if (bytes < UNIT || bytes > MOST || bytes % UNIT != 0) {
        throw new TypeConversionException(
            "'" + text + "' is not a multiple of 4KiB from 4KiB to 1GiB");
      }
      return bytes;
    }
  }

  /** A whole number from 1 to 65535. */
  static final class Count implements ITypeConverter<Integer> {
    private static final int MOST = 65535;

    @Override
    public Integer convert(String text) {
      if (text.matches("\\d{1,5}")) {
        int value = Integer.parseInt(text);
        if (value >= 1 && value <= MOST) {
          return value;
        }
      }
      throw new TypeConversionException("'" + text + "' is not a whole number from 1 to " + MOST);
    }
  }

  /** A whole number ≥ 0, decimal or with {@code 0x}. */
  static final class Whole implements ITypeConverter<Long> {
    @Override
    public Long convert(String text) {
      try {
        boolean hex = text.startsWith("0x") || text.startsWith("0X");
        long value = hex ? Long.parseLong(text.substring(2), 16) : Long.parseLong(text);
        if (value >= 0 && Character.isLetterOrDigit(text.charAt(0))) {
          return value;
        }
      } catch (NumberFormatException e) {
        // Reported below, like every other text that is not a number.
      }
      throw new TypeConversionException("'" + text + "' is not a whole number (decimal or 0x…)");
    }
  }

  /** The identifier of one namespace, 1 to 4294967294, as the bits of an int. */
  static final class Nsid implements ITypeConverter<Integer> {
    private static final long MOST = 0xFFFF_FFFEL;

    @Override
    public Integer convert(String text) {
      if (text.matches("\\d{1,10}")) {
        long value = Long.parseLong(text);
        if (value >= 1 && value <= MOST) {
          return (int) value;
        }
      }
      throw new TypeConversionException("'" + text + "' is not a whole number from 1 to " + MOST);
    }
  }

  /** A SHA-256 in hexadecimal, in lower case when read. */
  static final class Sha256 implements ITypeConverter<String> {
    @Override
    public String convert(String text) {
      if (text.matches("\\p{XDigit}{64}")) {
        return text.toLowerCase(Locale.ROOT);
      }
      throw new TypeConversionException("'" + text + "' is not a SHA-256, 64 hexadecimal digits");
    }
  }

  /** {@code auto}, {@code gpu} or {@code cpu}. */
  static final class Initiator implements ITypeConverter<InitiatorKind> {
    @Override
    public InitiatorKind convert(String text) throws Exception {
      return choice(InitiatorKind.class).convert(text);
    }
  }

  /** {@code host}, {@code vram-data} or {@code vram}. */
  static final class Where implements ITypeConverter<Placement> {
    @Override
    public Placement convert(String text) throws Exception {
      return choice(Placement.class).convert(text);
    }
  }

  /**
   * Where to listen: {@code 9105} on the loopback interface, {@code HOST:9105}, {@code [::1]:0}.
   */
  static final class ListenAt implements ITypeConverter<InetSocketAddress> {
    private static final Pattern FORM =
        Pattern.compile("(?:(?:\\[(?<literal>[^]]+)]|(?<host>[^:\\[\\]]+)):)?(?<port>\\d{1,5})");
    private static final int HIGHEST = 65535;

    @Override
    public InetSocketAddress convert(String text) {
      Matcher form = FORM.matcher(text);
      if (form.matches() && Integer.parseInt(form.group("port")) <= HIGHEST) {
        int port = Integer.parseInt(form.group("port"));
        String host = form.group("literal") == null ? form.group("host") : form.group("literal");
        return host == null
            ? new InetSocketAddress(InetAddress.getLoopbackAddress(), port)
            : new InetSocketAddress(host, port);
      }
      throw new TypeConversionException(
          "'" + text + "' is not [HOST:]PORT with a port from 0 to " + HIGHEST);
    }
  }

  /** One of an enum's constants, by what {@code toString} calls it, in any case. */
  static <E extends Enum<E>> ITypeConverter<E> choice(Class<E> type) {
    List<E> all = List.copyOf(EnumSet.allOf(type));
    return text ->
        all.stream()
            .filter(one -> one.toString().equalsIgnoreCase(text))
            .findFirst()
            .orElseThrow(
                () -> new TypeConversionException("'" + text + "' is not one of " + list(all)));
  }

  private static String list(List<?> all) {
    return all.stream().map(Object::toString).collect(Collectors.joining(", "));
  }

  /** A time longer than zero: {@code 500ms}. */
  static final class Time implements ITypeConverter<Duration> {
    private static final Pattern FORM =
        Pattern.compile("(?<number>\\d{1,9}(\\.\\d{1,9})?)(?<unit>us|ms|s)");
    private static final Map<String, Long> NANOS =
        Map.of("us", 1_000L, "ms", 1_000_000L, "s", 1_000_000_000L);

    @Override
    public Duration convert(String text) {
      Matcher form = FORM.matcher(text);
      if (form.matches()) {
        BigDecimal unit = BigDecimal.valueOf(NANOS.getOrDefault(form.group("unit"), 0L));
        long nanos = new BigDecimal(form.group("number")).multiply(unit).longValue();
        if (nanos > 0) {
          return Duration.ofNanos(nanos);
        }
      }
      throw new TypeConversionException("'" + text + "' is not a time such as 500ms or 5s");
    }
  }
}
