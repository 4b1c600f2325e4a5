package io.gpunvme.cli;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.storage.plan.Stripes;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** How stripes are read: {@code 4:64KiB}. */
final class StripeConverter implements ITypeConverter<Stripes> {
  @Override
  public Stripes convert(String text) {
    int colon = text.indexOf(':');
    if (colon < 0) {
      throw new TypeConversionException("'" + text + "' is not N:UNIT such as 4:64KiB");
    }
    int members = new Converters.Count().convert(text.substring(0, colon));
    long unit = new Converters.Size().convert(text.substring(colon + 1));
    try {
      return new Stripes(members, unit);
    } catch (InvalidRequestException e) {
      throw new TypeConversionException(e.getMessage());
    }
  }
}
