# Where text came from, beside the rules of a suite: once text of others was read, an act that they permit is carried
# out unasked only where the user's own words say what it does; all else asks the user, who knows what they asked for.
# careful(/typed): each argument that says whom or what it concerns was typed. careful(/worded): besides, every
# argument consists of words of the prompt. careful(/pointed): whom and what it concerns was typed or is the one thing
# that the user's words point at; and once private data was read as well, every argument is in the user's words.

Decl careful(How) bound [/name].

# Reads whose answer is by their documentation made of figures and of names that a service keeps: nobody writes
# sentences into it. All others bring text of others in; what an act answers is none.
Decl kept(Tool) bound [/name].

kept(/get_current_day).
kept(/search_contacts_by_name).
kept(/search_contacts_by_email).
kept(/get_iban).
kept(/get_balance).
kept(/get_user_info).
kept(/get_channels).
kept(/get_users_in_channel).
kept(/get_user_information).
kept(/get_hotels_prices).
kept(/get_hotels_address).
kept(/get_price_for_restaurants).
kept(/check_restaurant_opening_hours).
kept(/get_car_types_available).
kept(/get_car_fuel_options).
kept(/get_car_price_per_day).

tainted() :-
    earlier(_, Tool),
    reading(Tool),
    !kept(Tool).

# A field that text of others could not fill: the id that a service made, an address out of a kept book. Where the read
# was chosen by the user's own words and gave one value in it, or the run made the thing itself, nothing was left to choose.
Decl minted(Field) bound [/string].

minted("id").
minted("id_").

one_thing(Call, Field) :-
    only(Call, Field),
    chosen(Call),
    minted(Field).
one_thing(Call, Field) :-
    only(Call, Field),
    chosen(Call),
    earlier(Call, From),
    kept(From).
one_thing(Call, Field) :-
    only(Call, Field),
    minted(Field),
    earlier(Call, From),
    acting(From).
pointed(Action, Name, Value) :-
    careful(/pointed),
    came(Action, Name, Value, Call, Field, /whole),
    one_thing(Call, Field).

own(Action, Name, Value) :- typed(Action, Name, Value).
own(Action, Name, Value) :- pointed(Action, Name, Value).

drawn(Action) :-
    tool(Action, Tool),
    guarded(Tool, Name),
    argument(Action, Name, Value),
    !own(Action, Name, Value).

# What identifies a person or their money, by the documentation.
Decl private(Tool) bound [/name].

private(/get_user_information).
private(/get_user_info).
private(/get_iban).

all_words() :- careful(/worded).
all_words() :-
    careful(/pointed),
    earlier(_, Tool),
    private(Tool).
foreign(Action) :-
    all_words(),
    argument(Action, Name, Value),
    !own(Action, Name, Value),
    !worded(Action, Name, Value).

unasked(Action) :-
    permitted(Action),
    tool(Action, Tool),
    reading(Tool).
unasked(Action) :-
    permitted(Action),
    !tainted().
unasked(Action) :-
    permitted(Action),
    !drawn(Action),
    !foreign(Action).
