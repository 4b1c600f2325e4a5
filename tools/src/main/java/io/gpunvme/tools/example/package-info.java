/**
 * Whole programs on top of the library, small enough to be read as examples.
 *
 * <p>In: programs that a user of the library could have written, with results that the CPU checks.
 * Out: anything that others build on.
 */
@NullMarked
package io.gpunvme.tools.example;

import org.jspecify.annotations.NullMarked;
