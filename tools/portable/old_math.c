/* For the programs of `make dist-bin`: mathematics by the symbols of the oldest glibc. The new
 * ones of glibc 2.29 differ only in that they do not set errno through a wrapper. The linker's
 * --wrap leads every call here, also those of SQLite. */
#if defined(__x86_64__)
#define OLDEST "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define OLDEST "GLIBC_2.17"
#endif

#define OLD(name, parameters, arguments)                                                       \
	__asm__(".symver old_" #name "," #name "@" OLDEST);                                    \
	double old_##name parameters;                                                          \
	double __wrap_##name parameters;                                                       \
	double __wrap_##name parameters                                                        \
	{                                                                                      \
		return old_##name arguments;                                                   \
	}

OLD(exp, (double x), (x))
OLD(log, (double x), (x))
OLD(log2, (double x), (x))
OLD(pow, (double x, double y), (x, y))
