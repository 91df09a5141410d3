# Where text came from, beside the rules of a suite: once text of others was read, an act that they permit is carried
# out unasked only where the user's own words say what it does; all else asks the user, who knows what they asked for.
# careful(/typed): each argument that says whom or what it concerns was typed. careful(/worded): besides, every
# argument consists of words of the prompt.

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

drawn(Action) :-
    tool(Action, Tool),
    guarded(Tool, Name),
    argument(Action, Name, Value),
    !typed(Action, Name, Value).

own(Action, Name, Value) :- typed(Action, Name, Value).
own(Action, Name, Value) :- worded(Action, Name, Value).
foreign(Action) :-
    careful(/worded),
    argument(Action, Name, Value),
    !own(Action, Name, Value).

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
