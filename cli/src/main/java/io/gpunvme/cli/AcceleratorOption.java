package io.gpunvme.cli;

import io.gpunvme.gpu.accel.Accelerators;
import java.util.Locale;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.Option;

/** The option of all commands whose data may go to a GPU or to the CPU stand-in. */
final class AcceleratorOption {
  /** Which one. */
  enum Kind {
    AUTO,
    GPU,
    CPU;

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  /** {@code auto}, {@code gpu} or {@code cpu}. */
  static final class Converter implements ITypeConverter<Kind> {
    @Override
    public Kind convert(String text) throws Exception {
      return Converters.choice(Kind.class).convert(text);
    }
  }

  @Option(
      names = "--accelerator",
      paramLabel = "WHICH",
      converter = Converter.class,
      description =
          "Memory that the data goes to: gpu, cpu (a stand-in: host memory), or auto: the GPU if"
              + " there is one (auto).")
  private Kind kind = Kind.AUTO;

  /** Opens it; the caller closes it. */
  Accelerators.Choice open() {
    return Accelerators.open(kind.toString());
  }
}
