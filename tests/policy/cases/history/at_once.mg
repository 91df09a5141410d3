# Three requests at once under a limit; what is under way counts, and no more than two at a time.
Decl event(E) bound [/name].
Decl tool(E, Tool) bound [/name, /name].
Decl argument(E, Name, Value) bound [/name, /string, /any].
Decl used(Total) bound [/number] descr [fold("sum")].
Decl running(Tool, N) bound [/name, /number] descr [fold("pending")].
Decl refused(Tool, N) bound [/name, /number] descr [fold("count"), within("3 steps"), counts("asked")].
Decl before(Tool) bound [/name] descr [fold("last")].

feed_used(N) :- event(E), argument(E, "n", N).
feed_running(T) :- event(E), tool(E, T).
feed_refused(T) :- event(E), tool(E, T), argument(E, "n", N), 2000 < N.
feed_before(T) :- event(E), tool(E, T).

permitted(A) :- tool(A, /work).
permitted(A) :- tool(A, /rest), before(/work).
forbidden(A) :- argument(A, "n", N), used(Before), 5000 < fn:plus(Before, N).
forbidden(A) :- tool(A, T), running(T, N), 2 <= N.
forbidden(A) :- tool(A, T), refused(T, N), 2 <= N.
