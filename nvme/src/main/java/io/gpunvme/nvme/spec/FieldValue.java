package io.gpunvme.nvme.spec;

/**
 * One decoded field.
 *
 * @param name the specification's abbreviation, for example {@code MDTS}
 * @param value a {@link Long}, a {@link java.math.BigInteger} (fields wider than 63 bits) or a
 *     {@link String}
 * @param text the value for people: flags in hexadecimal, numbers in decimal
 * @param meaning one line on what the field says
 */
public record FieldValue(String name, Object value, String text, String meaning) {}
