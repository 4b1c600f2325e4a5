/**
 * Shared libraries that are opened at run time: where they are looked for, their functions, and
 * handles that call them. Not exported: for the bindings of this module.
 *
 * <p>Nothing in here knows what a function does. Of the module's other packages it uses only the
 * two errors for what is missing.
 */
@NullMarked
package io.gpunvme.cuda.library;

import org.jspecify.annotations.NullMarked;
